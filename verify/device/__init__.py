"""Devices: they execute a harness, natively or under a checking tool."""
