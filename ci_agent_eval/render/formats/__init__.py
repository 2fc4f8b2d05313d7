"""The report in formats for other programs: annotations, CTRF, JSON."""
