"""torch's own samples of its operators, `op_db` of torch.testing, through the backend, beside eager.

    python -m tests.operator_samples [--dtype f32] [--operators REGEX] [--all] [--special] [--jobs N] [--seconds S]

classes.py  what is left out of the share, and results that differ by choice
samples.py  the samples of an operator and a dtype
special.py  samples with special values, and in other layouts
running.py  one sample, compiled, beside eager
workers.py  processes that run samples: a crash or a hang is an outcome; outcomes are kept as they come
report.py   shares, reasons, and what is wrong
"""
