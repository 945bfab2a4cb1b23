"""The control loops that are not scheduling: replica sets, budgets, quotas, node health and what must be cleaned up."""
