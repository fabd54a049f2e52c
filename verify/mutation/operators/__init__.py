"""Operators: each makes faults of one kind in any CUDA source."""
