"""Statements that change types: ALTER TYPE and ALTER DOMAIN."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwave.catalog.types import Type
from sparkwave.planner.statements.alterations import (
    AddConstraint,
    DropConstraint,
    RenameConstraint,
    SetDefault,
    SetNotNull,
)
from sparkwave.planner.statements.relation_names import Name


@dataclass(frozen=True)
class AddLabel:
    """ALTER TYPE … ADD VALUE: the label goes to the end, or before or after `neighbour`."""

    name: Name
    label: str
    if_not_exists: bool
    neighbour: str | None
    is_before: bool


@dataclass(frozen=True)
class RenameLabel:
    """ALTER TYPE … RENAME VALUE."""

    name: Name
    label: str
    new_label: str


@dataclass(frozen=True)
class AddAttribute:
    name: str
    type: Type


@dataclass(frozen=True)
class DropAttribute:
    name: str
    if_exists: bool


@dataclass(frozen=True)
class RenameAttribute:
    name: str
    new_name: str


@dataclass(frozen=True)
class SetAttributeType:
    name: str
    type: Type


AttributeAction = AddAttribute | DropAttribute | RenameAttribute | SetAttributeType


@dataclass(frozen=True)
class AlterAttributes:
    """ALTER TYPE of a composite type, with its actions in order."""

    name: Name
    actions: tuple[AttributeAction, ...]


@dataclass(frozen=True)
class PlaceType:
    """ALTER TYPE or DOMAIN … RENAME TO, or SET SCHEMA: the new name or schema, and its position."""

    name: Name
    new_name: str | None
    schema: str | None
    position: int
    is_domain: bool = False


DomainAction = SetDefault | SetNotNull | AddConstraint | DropConstraint | RenameConstraint


@dataclass(frozen=True)
class AlterDomain:
    """ALTER DOMAIN: the action is that on a column called `value`; None for VALIDATE CONSTRAINT, which changes none."""

    name: Name
    action: DomainAction | None
