"""What was measured: data sets and their output units."""
