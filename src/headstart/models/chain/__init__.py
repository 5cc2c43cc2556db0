"""Models trained level by level, and the one rule behind every posterior."""
