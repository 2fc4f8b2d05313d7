"""Files of a run: the run folder, archives, and the ledger that its processes share."""
