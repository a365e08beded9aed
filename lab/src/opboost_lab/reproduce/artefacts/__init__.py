"""One module per table or statement of the paper, or per family of its figures."""
