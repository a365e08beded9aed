"""Measures of what a released column keeps: its order, and its counts in ranges."""

from opboost.metrics.expected_kendall import expected_kendall
from opboost.metrics.kendall import weighted_kendall
from opboost.metrics.range_queries import random_queries, range_query_mse

__all__ = ["expected_kendall", "random_queries", "range_query_mse", "weighted_kendall"]
