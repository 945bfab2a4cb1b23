"""What touches the world on the API server's behalf: its disks and its HTTP facade."""
