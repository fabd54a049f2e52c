"""A case: kernel x fixture x data profile, as host arrays and byte runs."""
