"""The same services in one process, on a seeded bus and a virtual clock: every race again, replayable."""
