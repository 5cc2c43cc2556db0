"""How fast it is, side by side with others: fits, suggestions, large data, GPUs."""
