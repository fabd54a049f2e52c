"""CUDA source as a syntax tree, and what it declares."""
