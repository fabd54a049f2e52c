"""Planted faults: mutants of a kernel, tried by full runs, and the kill matrix of the checks."""
