"""How learning is done: what is known already, who does the work, where, and who is told how far it is."""
