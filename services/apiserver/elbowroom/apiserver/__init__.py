"""The API server: store, registry, admission, watch, and the Kubernetes HTTP facade."""
