"""What all tests share: property tests repeat exactly, and no deadline, for machines that others use as well."""

from hypothesis import settings

settings.register_profile("strata", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("strata")
