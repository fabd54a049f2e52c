"""Findings and verdicts: what a check returns and a report prints."""
