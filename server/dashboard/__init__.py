"""The dashboard: a web page over the system catalogs, served by the server itself.

It reads by SQL with the rights of the logged-in user ([pages.py](pages.py)), and changes things by statements of that
user ([actions.py](actions.py)).
"""
