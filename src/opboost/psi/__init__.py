"""Private set intersection: which rows do two parties share, without showing the others.

``row_keys.py`` turns ID columns into row keys under a declared normalisation, ``blinding.py``
blinds them on an elliptic curve, ``common_rows.py`` finds the common ones and puts them in an order
that every party knows. Nothing here reads a file or a socket; ``curve_points.py`` is the form of
what travels.
"""
