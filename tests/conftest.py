"""What holds for all tests."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from fitune.messages import set_language

# A busy machine is no failure.
settings.register_profile("fitune", deadline=None)
settings.load_profile("fitune")

# Children that tests start speak English too.
os.environ["LC_ALL"] = "C.UTF-8"


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Tests read English texts, whatever the machine's locale; a test that sets a language leaves none behind."""
    set_language("en")
    yield
    set_language("en")
