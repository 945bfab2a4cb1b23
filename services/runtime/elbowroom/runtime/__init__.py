"""The container runtime of an emulated node, and the kernel that it stands on."""
