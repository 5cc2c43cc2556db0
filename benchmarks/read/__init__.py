"""Reading what was run: sheets and figures."""
