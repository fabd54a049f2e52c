"""The checks, one module each, and what they share."""
