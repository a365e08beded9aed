"""Tables in files, larger than memory: CSV and Parquet, one file or a folder.

``read_tables.py`` yields a table in pieces, ``write_tables.py`` writes pieces to a file that
appears only when it is complete, ``desensitize_table.py`` goes from one to the other, and
``describe_table.py`` describes a table.
"""
