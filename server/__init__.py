"""Serves SQL over the Postgres protocol: `wire`, `session` (a client's state), `dispatch` and the handlers.

It imports all layers below it; only `wire` imports buenavista.
"""
