"""The gate: from what is selected to a report."""
