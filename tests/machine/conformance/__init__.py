"""Conformance of the CPU device with the hardware, one instruction form at a time."""
