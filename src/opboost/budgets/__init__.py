"""The privacy spent on one person: budgets, certificates, and counts of an estimator's releases."""
