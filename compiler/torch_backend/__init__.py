"""What `torch.compile(model, backend="strata")` calls."""
