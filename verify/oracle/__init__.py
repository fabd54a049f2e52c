"""The oracle: arithmetic that tracks error bounds, expected values, the mpmath rung, power and visibility."""
