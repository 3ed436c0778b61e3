"""Small tables unless the benchmarks are timed."""

import pytest

from benchmarks.stages.tables import NAMES, Table, table_of


@pytest.fixture(params=NAMES)
def table(request: pytest.FixtureRequest, benchmark) -> Table:
    return table_of(request.param, is_small=benchmark.disabled)
