"""The gate: decide a verdict from a summary and a policy. A run without proof of success fails."""
