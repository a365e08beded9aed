"""One module a table, figure or statement of the paper, named by its label."""
