"""Private set intersection: which rows do two parties share, without showing the others.

``row_keys.py`` turns ID columns into row keys under a declared normalisation.  ``blinding.py``
blinds them on an elliptic curve, onto which ``hash_to_curve.py`` hashes them with the arithmetic of
``field25519.py``.  ``point_matching.py`` finds equal points, and ``common_rows.py`` puts the common
rows in an order that every party knows.  ``curve_points.py`` is the form of what travels.  No
module opens a socket.
"""
