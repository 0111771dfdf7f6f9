"""Tools that attack the compiler with drawn cases: each module has `main(seed, cases)`, which gives the failures."""
