"""Kubernetes objects and their arithmetic: views, quantities, effective requests, gates."""
