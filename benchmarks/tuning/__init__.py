"""Does the Optuna sampler help those who tune: small real problems, and the rivals that everybody uses."""
