"""The paper: its family of transfer models. Begin with ``family``."""
