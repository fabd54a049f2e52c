"""compute-sanitizer: its options as data, its logs as records, and what makes its silence believable."""
