"""What to try next where more than one thing is measured: several objectives, and limits."""
