"""Domains with rules about the settings: parts in which the rules are linear, and how to move inside them."""
