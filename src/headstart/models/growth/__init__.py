"""A target that grows: when hyperparameters are found anew, and what is kept in between."""
