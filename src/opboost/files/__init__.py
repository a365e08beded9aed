"""Tables in files, larger than memory: CSV and Parquet, one file or a folder.

``reading.py`` yields a table in pieces, ``writing.py`` puts pieces into a file that appears only
when it is whole, ``desensitize.py`` goes from one to the other, ``describe.py`` looks.
"""
