"""What is optimised in a benchmark. ``synthetic`` has the paper's five function families."""
