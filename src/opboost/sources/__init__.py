"""Tables that are not local files: databases and object stores, named by a URI.

``table_address.py`` turns what a user wrote into a path or a source; ``source_uri.py`` reads URIs
and refuses passwords in them.  ``database_table.py`` reads a database in passes that must agree;
``duckdb_table.py`` and ``postgres_table.py`` connect to one; ``s3_table.py`` opens objects of a
store.  ``driver_messages.py`` keeps credentials out of errors.
"""
