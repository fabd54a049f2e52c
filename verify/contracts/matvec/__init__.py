"""The quantised matrix-vector product: reference, bounds and data profiles."""
