"""Private set intersection: which rows do two parties share, without showing the others.

``keys.py`` turns ID columns into row keys under a declared normalisation, ``psi.py`` blinds them on
an elliptic curve, ``matching.py`` finds the common ones and puts them in an order that every party
knows.  Nothing here reads a file or a socket; ``points.py`` is the form of what travels.
"""
