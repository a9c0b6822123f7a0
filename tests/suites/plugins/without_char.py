"""SQLAlchemy's tests have columns of char(n), which is refused here, where they are about other things: varchar(n)."""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects.postgresql import base  # type: ignore[import-not-found]

_render = base.PGTypeCompiler._render_string_type


def _without_char(compiler: Any, name: str, *args: Any, **options: Any) -> Any:
    return _render(compiler, "VARCHAR" if name == "CHAR" else name, *args, **options)


base.PGTypeCompiler._render_string_type = _without_char
