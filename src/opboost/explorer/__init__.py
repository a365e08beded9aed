"""Local web pages: state a record total and see its plan, look at a mechanism, watch a job.

The first page: ``record_form`` reads a record total and plans it, ``record_as_toml`` writes the
TOML. The second, one mechanism by ε per cell: ``choice`` reads a form, ``log_distributions`` has
the distributions in floats (quick enough to redraw while a value is typed), ``mechanism_figures``
what is shown of one mechanism, ``equal_loss`` the others at the same exact level,
``choice_as_toml`` the TOML. ``remaining_budget`` says what a ledger leaves. ``trial`` tries a
table out in a process of its own (``trial_process``), ``job_view`` reads a job's folder.
``charts`` says what is drawn, ``pages`` fills templates, ``access`` and ``server`` answer the
browser.
"""
