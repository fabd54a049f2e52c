"""What a wrong output looks like: hypotheses about the fault, each tested in float64."""
