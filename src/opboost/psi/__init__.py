"""Private set intersection: find the rows that two parties share without revealing the others.

``row_keys.py`` turns ID columns into row keys under a declared normalisation.  ``blinding.py``
blinds them on an elliptic curve; ``hash_to_curve.py`` hashes them onto the curve with the
arithmetic of ``field25519.py``.  ``point_matching.py`` finds equal points, and ``common_rows.py``
puts the common rows in an order that every party knows.  ``curve_points.py`` defines the encoding
of points.  No module opens a socket.
"""
