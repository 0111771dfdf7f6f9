"""What `build` gives without a trial, beside the program as it is written and the bound of the machine."""
