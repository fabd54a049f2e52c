"""Token parity: a small decoder, once through the production kernels and once through the float64 oracle."""
