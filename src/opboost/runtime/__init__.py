"""What the package needs of Python itself: child processes, compiled code, threads, and extras."""
