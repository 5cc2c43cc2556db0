"""Where people already are: Ax and BayBE, with a head start."""
