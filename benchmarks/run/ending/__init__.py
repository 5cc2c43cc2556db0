"""Whether a run may end: what the advice on going on is worth."""
