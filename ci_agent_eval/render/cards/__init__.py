"""Cards: one for each cause of a failure or a warning."""
