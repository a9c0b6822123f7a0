"""Trees are walked and copied as sqlglot does it."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
from sql_scripts import SCRIPTS, read
from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.optimizer.annotate_types import annotate_types

from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.trees import parse_tree


def trees() -> list[exp.Expr]:
    """The queries of all scripts, with types."""
    found = []
    for sql in {record.sql for path in SCRIPTS for feature in read(path).features for record in feature.records}:
        if sql.startswith(("SELECT", "WITH")):
            try:
                found.append(annotate_types(parse_tree(sql)))
            except (Error, AssertionError):  # no statement; an interval that sqlglot cannot give a type
                continue
    return found


def by_level(tree: exp.Expr) -> Iterator[exp.Expr]:
    level = [tree]
    while level:
        yield from level
        level = [part for node in level for part in node.iter_expressions()]


def test_walks_and_copies() -> None:
    read_trees = trees()
    assert len(read_trees) > 1000
    for tree in read_trees:
        nodes = list(by_level(tree))
        assert list(map(id, tree.walk())) == list(map(id, nodes))
        assert set(map(id, tree.walk(bfs=False))) == set(map(id, nodes))
        for types in ((exp.Column,), (exp.Select, exp.Literal), (exp.Condition,)):
            assert list(map(id, tree.find_all(*types))) == [id(node) for node in nodes if isinstance(node, types)]
            in_depth = [id(node) for node in tree.dfs() if isinstance(node, types)]
            assert list(map(id, tree.find_all(*types, bfs=False))) == in_depth
        outside = [node for node in nodes if node.find_ancestor(exp.Subquery) is None]
        pruned = list(tree.walk(prune=lambda node: isinstance(node, exp.Subquery)))
        assert list(map(id, pruned)) == list(map(id, outside))
        for copied in (tree.copy(), copy.deepcopy(tree)):
            assert copied == tree
            for one, other in zip(by_level(tree), by_level(copied), strict=True):
                assert one is not other
                assert type(one) is type(other)
                assert (one.arg_key, one.index, one.comments, one._meta) == (
                    other.arg_key, other.index, other.comments, other._meta,
                )  # fmt: skip
                assert one.type == other.type
                assert one.type is None or one.type is not other.type
                assert one.parent is None or other.parent is not one.parent
            assert copied.parent is None
            assert all(part.parent is node for node in by_level(copied) for part in node.iter_expressions())


@pytest.mark.parametrize("walk", ["walk", "find_all"])
def test_parts_that_are_replaced_meanwhile(walk: str) -> None:
    """The parts of what replaces a node's part are passed, too."""
    tree = parse_tree("SELECT a")
    passed = []
    for node in tree.walk() if walk == "walk" else tree.find_all(exp.Expression):
        passed.append(node)
        if isinstance(node, exp.Select):
            node.set("expressions", [exp.column("b", table="t")])
    assert [node.name for node in passed if isinstance(node, exp.Identifier)] == ["b", "t"]


def test_texts_given_to_builders_are_parsed_to_trees_of_their_own() -> None:
    def built() -> exp.Select:
        return exp.select("a").from_("kept").join("other", join_type="left", on=exp.cast(exp.column("b"), "boolean"))

    one, other = built(), built()
    assert one.sql() == "SELECT a FROM kept LEFT JOIN other ON CAST(b AS BOOLEAN)"
    assert not {*map(id, one.walk())} & {*map(id, other.walk())}
    for table in other.find_all(exp.Table):
        table.this.set("this", "changed")
    assert built() == one
    for _ in range(2):
        with pytest.raises(ParseError):
            exp.select("a").from_("kept (")
