"""Speed, side by side with named peers in one run, as ratios.

One file a benchmark; ``peers.py`` runs other libraries, each in an environment of its own.
"""
