"""Arguments of the runner's tests."""

QUIET = ("-p", "no:cacheprovider")
"""Arguments of pytest that leave no cache behind."""
