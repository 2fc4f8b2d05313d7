"""Files of a run: the run folder, archives, and git's."""
