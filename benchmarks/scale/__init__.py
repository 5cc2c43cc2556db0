"""How it grows: many rows, many sources, long studies."""
