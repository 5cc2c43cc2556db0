"""What is it worth to name batches? Campaigns with shifts put in, whose rows are in batches on purpose confounded."""
