"""AUTO: several models, each believed as far as it predicted."""
