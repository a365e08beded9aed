"""Local web pages: choose a mechanism by looking, and watch a job.

From numbers to a page: ``choice`` reads a form, ``rows`` has the laws in floats (quick enough to
redraw while a value is typed), ``figures`` what is shown of one mechanism, ``matching`` the others
at the same exact level, ``declaration`` the TOML, ``budget`` what a ledger leaves.  ``trial`` tries
a table out in a process of its own (``background``), ``runs`` reads a job's folder.  ``svg`` draws,
``charts`` says what, ``pages`` fills templates, ``guard`` and ``server`` answer the browser.
"""
