"""The oracle: number formats, bound-carrying arithmetic, references in float64 and mpmath, visibility."""
