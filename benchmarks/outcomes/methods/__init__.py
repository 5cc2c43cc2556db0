"""Who is compared: headstart with its past and without, and what other people use."""
