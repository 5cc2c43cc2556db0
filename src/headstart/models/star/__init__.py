"""Independent sources, and the target on top of their weighted sum."""
