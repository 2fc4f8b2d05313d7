"""The report and its episodes as one HTML page that uses no network."""
