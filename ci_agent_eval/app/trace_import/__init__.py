"""Import of production traces: read, redacted, judged, or turned into a regression test."""
