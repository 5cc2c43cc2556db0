"""What was learnt, kept in a folder that any number of processes share: numbers, and nothing that could be run."""
