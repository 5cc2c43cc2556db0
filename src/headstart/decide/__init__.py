"""What to try next: BoTorch's acquisition functions for minimisation, and the point where they are best."""
