"""The kubelet: admission, allocation, pending queue, actuation, status, checkpoints."""
