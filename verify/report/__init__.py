"""Reports: tables, findings, JSON and reproduction folders."""
