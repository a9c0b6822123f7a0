"""The dashboard: a web page over the system catalogs, served by the server itself.

What it shows it asks in SQL, as the user who looks at it ([pages.py](pages.py)), and what it changes are statements of
that user too ([actions.py](actions.py)).
"""
