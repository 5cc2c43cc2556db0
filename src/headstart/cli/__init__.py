"""The command line: parse, call, print; no logic. Nothing heavy is imported before a command runs."""
