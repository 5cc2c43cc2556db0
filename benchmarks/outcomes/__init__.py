"""Several outcomes, limits and rules: with a past, without one, and by others."""
