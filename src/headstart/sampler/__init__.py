"""For those who use Optuna."""
