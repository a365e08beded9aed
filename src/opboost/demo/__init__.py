"""The demo: three organisations as real processes, and one column under every mechanism."""
