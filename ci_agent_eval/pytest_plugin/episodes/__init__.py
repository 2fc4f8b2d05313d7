"""Episodes of single tests: marker, fixtures, outcome and redaction."""
