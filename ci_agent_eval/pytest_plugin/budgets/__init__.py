"""Budgets of the suite: shared spending, and stopping the run that exceeds them."""
