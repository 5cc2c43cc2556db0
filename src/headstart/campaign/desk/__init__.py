"""What a desk does with a campaign's folder: type results, add a row, begin, undo; with a history in plain files."""
