"""The structs of `messages` are those of the recorded schemas."""

from pathlib import Path

import pytest

from tools.write_messages import FOLDER, formatted, module_text, written_modules


@pytest.mark.parametrize(("module", "names"), written_modules().items())
def test_the_structs_are_as_they_would_be_written_now(module: str, names: list[str]) -> None:
    """Every module is what the generator writes from the recorded schemas."""
    written = Path(FOLDER / f"{module}.py").read_text("utf-8")
    assert written == formatted(module_text(module, names))
