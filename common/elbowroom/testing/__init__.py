"""Builders and fixtures."""
