"""What a thread works on, for the lines it logs: `job_id`, `epoch`, `session` (the process id that clients see)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

_FIELDS: ContextVar[Mapping[str, object]] = ContextVar("log_fields", default={})  # noqa: B039 - never changed in place

P = ParamSpec("P")
T = TypeVar("T")


def fields() -> Mapping[str, object]:
    """The fields of the thread that asks."""
    return _FIELDS.get()


@contextmanager
def logged(**more: object) -> Iterator[None]:
    """Add fields to the lines that are logged meanwhile."""
    token = _FIELDS.set({**_FIELDS.get(), **more})
    try:
        yield
    finally:
        _FIELDS.reset(token)


def note(**more: object) -> None:
    """Add fields to all lines that the thread logs from now on, in place of those of the same names."""
    _FIELDS.set({**_FIELDS.get(), **more})


def in_this_context(function: Callable[P, T]) -> Callable[P, T]:
    """The function with the fields of now, to be called once on another thread."""
    context = copy_context()
    return lambda *args, **kwargs: context.run(function, *args, **kwargs)
