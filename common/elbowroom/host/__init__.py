"""The only I/O: processes, clocks, disks and sockets for machines."""
