"""What the columns of files are for, and their cells made plain."""
