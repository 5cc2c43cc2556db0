"""What a GPU wants to be done otherwise."""
