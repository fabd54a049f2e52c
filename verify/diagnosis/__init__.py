"""Diagnoses wrong outputs: hypotheses about the fault, each tested in float64."""
