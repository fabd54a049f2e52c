"""Checks: one file a way of looking at a case."""
