"""The simulated host: a seeded world with virtual time."""
