"""Where the past comes from: tables and studies as people have them, matched to a new space."""
