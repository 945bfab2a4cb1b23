"""The controllers, one process on shared informers."""
