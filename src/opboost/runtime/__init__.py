"""What the package needs of Python itself: child processes, and compiled code."""
