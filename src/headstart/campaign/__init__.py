"""For those who do experiments: a folder of files."""
