"""Sources: what connectors read gets into tables of the lake.

One file a connector, each of which reads on from where its splits stand (`connector.py` says how), and one thread that
reads them all and commits what they read together with where they stand then (`reader.py`).
"""
