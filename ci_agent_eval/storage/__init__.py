"""Files of a run: the run folder and archives."""
