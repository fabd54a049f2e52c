"""The system that verify runs on: processes, signals, temporary folders, its own files."""
