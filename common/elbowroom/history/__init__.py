"""Recorded runs and their judges."""
