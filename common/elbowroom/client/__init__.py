"""Clients for people, tests and controllers."""
