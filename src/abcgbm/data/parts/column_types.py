"""The type of a column that comes in parts: one that holds the values of all of them."""

from __future__ import annotations

from typing import Any

from abcgbm.data.files.column_types import is_text, with_plain_numbers
from abcgbm.data.files.errors import require_pyarrow


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
