"""Import results of other tools: one module for each format. Pure."""
