"""Files as people have them: cells, tables, and writing them whole."""
