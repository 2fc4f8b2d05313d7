"""Budgets of the suite: shared spending, and stopping a run that exceeds a budget."""
