"""The campaign's page in a browser (an extra: ``headstart[web]``)."""
