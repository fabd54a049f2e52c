"""compute-sanitizer: its options, its logs as records, and the proof that a clean run means something."""
