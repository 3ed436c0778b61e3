"""Hypothesis profiles: `HYPOTHESIS_PROFILE=thorough pytest` looks much longer for a counter-example."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Scripts that tests start import the same helpers as the tests: `pythonpath` of pyproject.toml.
HELPERS = [
    str(Path(__file__).parent / name)
    for name in ("support", "reference", "core", "communication", "promises")
]
os.environ["PYTHONPATH"] = os.pathsep.join(
    [*HELPERS, *filter(None, [os.environ.get("PYTHONPATH")])]
)

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile(
    "quick", max_examples=15, derandomize="CI" in os.environ, print_blob=True, **COMMON
)
settings.register_profile("ci", max_examples=50, derandomize=True, print_blob=True, **COMMON)
settings.register_profile("thorough", max_examples=2000, **COMMON)
settings.register_profile("ci-small", max_examples=15, derandomize=True, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Let SIGINT interrupt the test and its child processes, even if it is ignored.

    It is in a background job of a script, under ``nohup`` and in some CI runners.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
