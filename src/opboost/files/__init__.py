"""Tables in files, larger than memory: CSV and Parquet, one file or a folder.

``read_tables.py`` yields a table in pieces, ``write_tables.py`` puts pieces into a file that
appears only when it is whole, ``desensitize_table.py`` goes from one to the other,
``describe_table.py`` looks.
"""
