"""A report and its episodes in, one HTML page out: no network, nothing of others takes effect."""
