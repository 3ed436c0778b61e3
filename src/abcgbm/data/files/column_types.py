"""Column types that agree over all blocks of a file and over all files."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from abcgbm.errors import require_pyarrow

# Cells that pyarrow parses as numbers, except hexadecimal ones. It parses those as integers but not
# as floats, so the type of a column would depend on its other cells.
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
    """Whether an Arrow type is numeric, boolean or null."""
    types = require_pyarrow("pyarrow.types")
    return bool(
        types.is_null(of) or types.is_integer(of) or types.is_floating(of) or types.is_boolean(of)
    )


def is_text(of: Any) -> bool:
    """Whether an Arrow type is a string type, in any layout."""
    types = require_pyarrow("pyarrow.types")
    return bool(types.is_string(of) or types.is_large_string(of) or types.is_string_view(of))


def unified_schema(schemas: Sequence[Any]) -> Any:
    """Return the schema that fits the columns of all blocks: numbers, booleans, or text."""
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


def concat_unified(tables: Sequence[Any]) -> Any:
    """Concatenate tables after casting their columns to common types."""
    schema = unified_schema([table.schema for table in tables])
    return require_pyarrow().concat_tables([table.cast(schema, safe=False) for table in tables])


def concat_tables(tables: Sequence[Any]) -> Any:
    """Concatenate tables of one file, whose types may differ only if it is a text file."""
    first = tables[0].schema
    if all(table.schema.equals(first) for table in tables):
        return require_pyarrow().concat_tables(tables)
    return concat_unified(tables)


def inconsistent_columns(tables: Sequence[Any]) -> set[str]:
    """Return the columns of text that were parsed as another type in some table."""
    types = require_pyarrow("pyarrow.types")
    schema = unified_schema([table.schema for table in tables])

    def is_other(of: Any) -> bool:
        return not types.is_string(of) and not types.is_null(of)

    return {
        name
        for place, name in enumerate(schema.names)
        if types.is_string(schema.field(place).type)
        and any(is_other(table.schema.field(place).type) for table in tables)
    }


def columns_of_type(schema: Any, condition: Any) -> list[str]:
    """Return the columns whose type satisfies a condition."""
    return [field.name for field in schema if condition(field.type)]


def hexadecimal_columns(table: Any) -> list[str]:
    """Return the text columns that hold a hexadecimal number."""
    compute = require_pyarrow("pyarrow.compute")

    def holds_one(column: Any) -> bool:
        found = compute.match_substring_regex(column, HEXADECIMAL)
        return bool(compute.any(found).as_py())

    return [name for name in table.column_names if holds_one(table.column(name))]


def with_plain_numbers(table: Any) -> Any:
    """Convert decimal columns to floats, as which they are used in any case."""
    arrow, types = require_pyarrow(), require_pyarrow("pyarrow.types")
    for place, field in enumerate(table.schema):
        if types.is_decimal(field.type):
            floats = table.column(place).cast(arrow.float64())
            table = table.set_column(place, field.name, floats)
    return table


def without(names: Collection[str], others: Collection[str]) -> list[str]:
    """Return names in order, except some."""
    excluded = {*others}
    return [name for name in names if name not in excluded]


def common_type(one: Any, other: Any) -> Any:
    """Return the Arrow type that holds values of both types, or None if there is none.

    Null fits any type, integers and floats are both numbers, text may have any layout, and a
    dictionary fits the type of its values.
    """
    arrow = require_pyarrow()
    if one.equals(other):
        return one
    if is_text(_value_type(one)) and is_text(_value_type(other)):
        return arrow.large_string()
    if _is_dictionary(one) != _is_dictionary(other):
        one, other = _value_type(one), _value_type(other)
    numbers = [arrow.float64() if arrow.types.is_decimal(of) else of for of in (one, other)]
    schemas = [arrow.schema([arrow.field("column", of)]) for of in numbers]
    try:
        return arrow.unify_schemas(schemas, promote_options="permissive").field(0).type
    except arrow.ArrowException:
        return None


def as_types(table: Any, schema: Any) -> Any:
    """Cast columns such that tables can be concatenated; numbers of any width stay.

    Decimal numbers become floats, as Arrow cannot unify all of their widths.
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


def _value_type(of: Any) -> Any:
    """Return the value type of a dictionary type; other types are returned as they are."""
    return of.value_type if _is_dictionary(of) else of
