"""Results of other runners: one module a format, each from a parsed document to episodes. Pure."""
