"""The forms in which people have their past, each read into a ``RawTask``."""
