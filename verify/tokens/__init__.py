"""Token parity: a small decoder, run with the production kernels and with the float64 oracle."""
