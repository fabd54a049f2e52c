"""Compilers: found, run, and their results kept."""
