"""Where people work: samplers, folders of CSV files, and the past data that come in through them."""
