"""The command line, cluster.yaml, supervisor and local placement."""
