"""Studies of which several things are measured: objectives, and constraints that must hold."""
