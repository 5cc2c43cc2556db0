"""``headstart.toml``: read, with the line of whatever is wrong in it, and written."""
