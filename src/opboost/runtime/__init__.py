"""Child processes, compiled code, threads, optional packages, and how modules are loaded."""
