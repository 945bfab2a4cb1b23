"""The scheduler: queue, cache and snapshot, plugins, preemption, cycle."""
