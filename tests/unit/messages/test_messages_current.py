"""The structs of `messages` are those of the recorded schemas."""

from pathlib import Path

import pytest

from tools.write_messages import (
    API_KEYS,
    FOLDER,
    formatted,
    module_text,
    with_all_numbers,
    written_modules,
)


@pytest.mark.parametrize(("module", "names"), written_modules().items())
def test_the_structs_are_as_they_would_be_written_now(module: str, names: list[str]) -> None:
    """Every module is what the generator writes from the recorded schemas."""
    written = Path(FOLDER / f"{module}.py").read_text("utf-8")
    assert written == formatted(module_text(module, names))


def test_numbers_of_apis_are_those_of_their_schemas() -> None:
    """And a number that is missing is written where it belongs."""
    text = API_KEYS.read_text("utf-8")
    assert with_all_numbers(text) == text
    assert with_all_numbers(text.replace("    JOIN_GROUP = 11\n", "")) == text
