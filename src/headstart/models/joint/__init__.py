"""Models trained on all data at once."""
