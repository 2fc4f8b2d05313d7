"""Files of a run: the run folder, archives, and the ledger shared by its processes."""
