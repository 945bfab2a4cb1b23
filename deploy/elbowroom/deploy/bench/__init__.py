"""Benchmarks: each figure taken afresh, beside that of a real control plane or the physical limit of this machine."""

from elbowroom.deploy.bench.run import run

__all__ = ["run"]
