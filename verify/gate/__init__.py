"""The gate: from a selection to a report."""
