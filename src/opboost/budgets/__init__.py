"""What is spent on one person: budgets, certificates, and the releases of an estimator counted."""
