"""Gaussian processes with no notion of a task: kernels, hyperparameters, evidence, fitting."""
