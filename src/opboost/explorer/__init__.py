"""Local web pages: state a record total and see its plan, look at a mechanism, or watch a job.

On the first page, ``record_form`` reads a record total and plans it, and ``record_as_toml`` writes
the TOML.  On the second page, which shows one mechanism by its ε per cell, ``choice`` reads the
form, ``log_distributions`` computes distributions in floats (fast enough to redraw while a value is
typed), ``mechanism_figures`` computes the figures of one mechanism, ``equal_loss`` scales the other
mechanisms to the same exact level, and ``choice_as_toml`` writes the TOML. ``remaining_budget``
computes what a ledger has left.  ``trial`` trains models on a table in a process of its own
(``trial_process``), and ``job_view`` reads a job's folder.  ``charts`` lays out the charts,
``pages`` fills in templates, and ``access`` and ``server`` answer the browser.
"""
