"""Decode attention: operands, reference, bounds and data profiles, shared by its contracts."""
