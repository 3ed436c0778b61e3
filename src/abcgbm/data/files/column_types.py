"""One type for a column over all blocks and files."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from abcgbm.errors import require_pyarrow

# What pyarrow takes for a number in a cell, but for hexadecimal ones: those it takes for integers
# and not for floats, so that what a column is would depend on its other cells.
_NUMBER = re.compile(
    r"[ \t]*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan(?:\(\w*\))?)[ \t]*",
    re.IGNORECASE | re.ASCII,
)
HEXADECIMAL = r"^[ \t]*0[xX]"


def reads_as_number(cell: str, decimal: str = ".") -> bool:
    """Whether a cell of a text file is a number."""
    if decimal != ".":
        if "." in cell:
            return False
        cell = cell.replace(decimal, ".")
    return _NUMBER.fullmatch(cell) is not None


def is_number(of: Any) -> bool:
    """Whether an Arrow type is that of numbers, truth values or nothing at all."""
    types = require_pyarrow("pyarrow.types")
    return bool(
        types.is_null(of) or types.is_integer(of) or types.is_floating(of) or types.is_boolean(of)
    )


def is_text(of: Any) -> bool:
    """Whether an Arrow type is that of text, in any layout."""
    types = require_pyarrow("pyarrow.types")
    return bool(types.is_string(of) or types.is_large_string(of) or types.is_string_view(of))


def settled(schemas: Sequence[Any]) -> Any:
    """Return the schema that holds the columns of all blocks: numbers, truth values, or text."""
    arrow, types = require_pyarrow(), require_pyarrow("pyarrow.types")
    fields = []
    for place, name in enumerate(schemas[0].names):
        seen = {schema.field(place).type for schema in schemas}
        known = {of for of in seen if not types.is_null(of)}
        if all(is_number(of) and not types.is_boolean(of) for of in known):
            of = known.pop() if len(known) == 1 else arrow.float64()
        else:
            of = arrow.bool_() if known == {arrow.bool_()} else arrow.string()
        fields.append(arrow.field(name, of))
    return arrow.schema(fields)


def united(tables: Sequence[Any]) -> Any:
    """Put tables end to end; nothing becomes anything, integers beside floats become floats."""
    schema = settled([table.schema for table in tables])
    return require_pyarrow().concat_tables([table.cast(schema, safe=False) for table in tables])


def end_to_end(tables: Sequence[Any]) -> Any:
    """Put parts of a file of any format end to end: as they are, if they are of one schema."""
    first = tables[0].schema
    if all(table.schema.equals(first) for table in tables):
        return require_pyarrow().concat_tables(tables)
    return united(tables)


def misread(tables: Sequence[Any]) -> set[str]:
    """Return the columns of text that some of the tables have as something else."""
    types, schema = require_pyarrow("pyarrow.types"), settled([table.schema for table in tables])

    def is_other(of: Any) -> bool:
        return not types.is_string(of) and not types.is_null(of)

    return {
        name
        for place, name in enumerate(schema.names)
        if types.is_string(schema.field(place).type)
        and any(is_other(table.schema.field(place).type) for table in tables)
    }


def columns_of_type(schema: Any, is_such: Any) -> list[str]:
    """Return the columns whose type is such."""
    return [field.name for field in schema if is_such(field.type)]


def hexadecimal(table: Any) -> list[str]:
    """Return the columns of text that hold a hexadecimal number."""
    compute = require_pyarrow("pyarrow.compute")

    def holds_one(column: Any) -> bool:
        found = compute.match_substring_regex(column, HEXADECIMAL)
        return bool(compute.any(found).as_py())

    return [name for name in table.column_names if holds_one(table.column(name))]


def with_plain_numbers(table: Any) -> Any:
    """Return a table whose decimal numbers are floats, which is what they become in any case."""
    arrow, types = require_pyarrow(), require_pyarrow("pyarrow.types")
    for place, field in enumerate(table.schema):
        if types.is_decimal(field.type):
            floats = table.column(place).cast(arrow.float64())
            table = table.set_column(place, field.name, floats)
    return table


def without(names: Collection[str], others: Collection[str]) -> list[str]:
    """Return names in their order but for some."""
    gone = {*others}
    return [name for name in names if name not in gone]


def common_type(one: Any, other: Any) -> Any:
    """Return the Arrow type that holds values of both, or None if they are of two kinds.

    Nothing at all is of any kind; integers and floats are of one, text in any layout, and a
    dictionary beside what it is made of.
    """
    arrow = require_pyarrow()
    if one.equals(other):
        return one
    if is_text(_of_values(one)) and is_text(_of_values(other)):
        return arrow.large_string()
    if _is_dictionary(one) != _is_dictionary(other):
        one, other = _of_values(one), _of_values(other)
    numbers = [arrow.float64() if arrow.types.is_decimal(of) else of for of in (one, other)]
    schemas = [arrow.schema([arrow.field("column", of)]) for of in numbers]
    try:
        return arrow.unify_schemas(schemas, promote_options="permissive").field(0).type
    except arrow.ArrowException:
        return None


def as_types(table: Any, schema: Any) -> Any:
    """Return a table that can be put below others of a schema; numbers of any width stay.

    But decimal numbers become floats, as they would in any case: Arrow has no room for all of them.
    """
    for place, field in enumerate(table.schema):
        wanted = schema.field(field.name).type
        if field.type.equals(wanted):
            continue
        if is_text(wanted) or (_is_dictionary(field.type) and not _is_dictionary(wanted)):
            table = table.set_column(place, field.name, table.column(place).cast(wanted))
    return with_plain_numbers(table)


def _is_dictionary(of: Any) -> bool:
    return bool(require_pyarrow("pyarrow.types").is_dictionary(of))


def _of_values(of: Any) -> Any:
    """Return the type of the values of a dictionary, or else the type itself."""
    return of.value_type if _is_dictionary(of) else of
