"""The fast path for one problem: values and gradients in closed form."""
