"""Speaks Postgres: the wire (`wire`), one client (`session`), the statements (`dispatch` and the handlers).

Imports everything below it; the only importer of buenavista is `wire`.
"""
