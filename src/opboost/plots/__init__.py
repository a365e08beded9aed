"""Charts: SVG text that needs no library (``svg.py``), and matplotlib figures (``figures.py``)."""
