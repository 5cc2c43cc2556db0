"""Rules about the settings that are known before an experiment: which rows of values may be run at all."""
