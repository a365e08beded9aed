"""What the project measures about itself: one module a table or figure."""
