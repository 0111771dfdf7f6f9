"""The oracles: numpy evaluators of te and loop functions, independent of every lowering."""
