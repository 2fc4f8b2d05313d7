"""Recording dependencies in the process that runs the suite."""
