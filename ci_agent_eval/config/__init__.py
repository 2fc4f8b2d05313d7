"""Options, settings and inputs: their names, where each is read, and their validation."""
