"""Run a suite: pytest in a supervised subprocess, in the suite's own interpreter."""
