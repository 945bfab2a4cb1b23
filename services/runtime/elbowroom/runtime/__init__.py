"""The container runtime: CRI-shaped calls over a model of cgroups and workloads."""
