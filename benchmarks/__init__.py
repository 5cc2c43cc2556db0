"""Does it work: problems with known answers, runs on them, and pictures of the runs."""
