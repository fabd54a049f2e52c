"""Reports: table, findings, JSON and the reproduction folder."""
