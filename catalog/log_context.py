"""The log fields of a thread: `job_id`, `epoch`, `session` (the process id that clients see)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

_FIELDS: ContextVar[Mapping[str, object]] = ContextVar("log_fields", default={})  # noqa: B039 - never changed in place

P = ParamSpec("P")
T = TypeVar("T")


def fields() -> Mapping[str, object]:
    """Return the calling thread's fields."""
    return _FIELDS.get()


@contextmanager
def logged(**more: object) -> Iterator[None]:
    """A context whose log lines have more fields."""
    token = _FIELDS.set({**_FIELDS.get(), **more})
    try:
        yield
    finally:
        _FIELDS.reset(token)


def note(**more: object) -> None:
    """Add fields to all later log lines of the thread; they replace fields of the same names."""
    _FIELDS.set({**_FIELDS.get(), **more})


def in_this_context(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function with the present fields, for one call on another thread."""
    context = copy_context()
    return lambda *args, **kwargs: context.run(function, *args, **kwargs)
