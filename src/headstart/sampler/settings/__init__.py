"""Which settings a trial may run with: rules about them, and lists of them."""
