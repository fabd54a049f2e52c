"""Devices: what executes a harness, natively or under a tool."""
