"""Sources: the rows that connectors read get into tables of the lake.

Each connector has one file and reads on from the positions of its splits (see `connector.py`). One thread reads all
sources and commits the rows together with the new positions (`reader.py`).
"""
