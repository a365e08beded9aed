"""A score as a sum over parties: trees as flat arrays, checks on them, and what a party releases.

Nothing here needs a booster's library, so a feature party can evaluate trees without one.
"""
