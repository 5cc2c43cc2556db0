"""What is compared on: tables with two measured outcomes, and functions with rules about their settings."""
