"""A search for raw values and IDs in everything that a job writes or sends."""
