"""The manual: its example tables, its blocks run, its notebooks, its pages built and checked."""
