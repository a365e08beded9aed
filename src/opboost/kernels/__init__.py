"""Compiled loops.  Each has a slow, exact twin in pure Python that tests compare it with.

A kernel turns ready random words into outputs and **flags** the few rows whose words lie on a
rounded threshold; it never decides those.  The caller resolves flagged rows with more random bits
and exact integers, so a kernel's rounding never shows in the law.
"""
