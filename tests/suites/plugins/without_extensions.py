"""SQLAlchemy makes PostgreSQL's extensions citext and hstore before its tests; there are none here."""

from sqlalchemy.dialects.postgresql import provision  # type: ignore[import-not-found]

provision._extensions.clear()
