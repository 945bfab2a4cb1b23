"""Chaos on real processes: a workload and a nemesis over a cluster, and a verdict on what was recorded.

``scenario`` is what people write, ``plan`` draws the faults from a seed, ``faults`` carries them out, ``relay`` is the process in
the middle of the bus that breaks links, ``workload`` plays the users, ``conductor`` runs it all and ``show`` tells how it goes.
"""
