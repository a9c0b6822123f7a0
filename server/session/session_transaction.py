"""What the open transaction of a session has chosen and reads."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwave.catalog.model import Catalog
from sparkwave.server.context import Context
from sparkwave.server.session.block import Block
from sparkwave.server.session.portal import Names


@dataclass(frozen=True)
class Pinned:
    """The snapshot of the lake that a read-only or atomic transaction reads, and the catalog of that moment.

    `applied` is a snapshot up to which every created view has followed its tables.
    """

    snapshot: int | None
    catalog: Catalog
    applied: int


class SessionTransaction:
    """The transaction of one session.

    `pinned` is the snapshot that it reads, if BEGIN has pinned one. `block` has the writes of an atomic transaction,
    which has a pinned snapshot. `may_write` is what READ WRITE or READ ONLY have chosen for a block. `has_committed`
    tells that the open block has a committed statement, where each commits by itself.
    """

    def __init__(self, context: Context, names: Names) -> None:
        self._context = context
        self._names = names
        self.pinned: Pinned | None = None
        self.block: Block | None = None
        self.may_write: bool | None = None
        self.has_committed = False

    @property
    def is_open(self) -> bool:
        """Whether a BEGIN, or a statement of an atomic transaction, has opened a block."""
        return self._names.in_block or self.block is not None

    @property
    def catalog(self) -> Catalog:
        """The catalog that statements see: the present one, unless another is pinned."""
        return self.pinned.catalog if self.pinned is not None else self._context.store.catalog

    def pin(self) -> None:
        """Pin the current snapshot of the lake and the catalog: reads see them until `unpin`."""
        if self.pinned is None:
            coordinator, lake = self._context.coordinator, self._context.lake
            coordinator.checkpoints.attempt()
            applied = coordinator.stored_snapshot  # before the pin
            with lake.exclusive():
                self.pinned = Pinned(lake.pin(), self._context.store.catalog, applied)

    def unpin(self) -> None:
        if self.pinned is not None:
            self._context.lake.unpin(self.pinned.snapshot)
            self.pinned = None

    def forget_choices(self) -> None:
        """Forget what the block has chosen, at its end."""
        self.may_write = None
        self.has_committed = False

    def close(self) -> None:
        """End the transaction without its writes, when the client has gone."""
        self.unpin()
        if self.block is not None:
            self.block.discard()
