"""Contracts of kernels that serve only as oracles. They are run by file name, never by default."""
