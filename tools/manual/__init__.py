"""Build and check the manual: example tables, code blocks, notebooks, figures and pages."""
