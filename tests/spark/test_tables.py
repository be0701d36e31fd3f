"""Each table between tasks is described once, and Spark's own columns follow from it."""

from __future__ import annotations

import ast
import inspect

import pyarrow as pa
import pytest

from spaseq.spark.session import tables

TABLES = [name for name in tables.__all__ if isinstance(getattr(tables, name), pa.Schema)]


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_explained(name: str) -> None:
    body = ast.parse(inspect.getsource(tables)).body
    at = next(i for i, node in enumerate(body) if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name)
    text = ast.unparse(body[at + 1])
    missing = [column for column in getattr(tables, name).names if f"`{column}`" not in text]
    assert not missing, f"the text below {name} does not say what is in {missing}"


def test_rows_of_a_table() -> None:
    rows = [(1, 2, 0, ["<a>", None], None), (3, 4, -1, None, ["<k>"])]
    batch = tables.batch_of(tables.SOLUTIONS, rows)
    assert list(zip(*(column.to_pylist() for column in batch.columns), strict=True)) == rows
    assert batch.schema == tables.SOLUTIONS == tables.batch_of(tables.SOLUTIONS, []).schema
    columns = tables.spark_schema(tables.SOLUTIONS).simpleString()
    assert columns == "struct<position:bigint,time:bigint,gpm:int,terms:array<string>,key:array<string>>"
