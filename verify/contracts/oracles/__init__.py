"""Contracts of kernels that serve as oracles only. They are run by name of their file, never by default."""
