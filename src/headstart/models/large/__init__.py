"""Sources of thousands of rows: which rows teach the hyperparameters, and how all of them are predicted from."""
