"""The count of lines that changes are measured by."""

from collections import Counter

from tools.count_lines import is_generated, kinds_of

TEXT = '''"""A module.

Two lines.
"""

from os import (
    path,
)

LIMIT = 3
"""A docstring of a constant."""


def one() -> str:  # a comment counts as logic
    return "text"
'''


def test_module_is_split_by_kind() -> None:
    """Each line has one kind; a blank line is blank wherever it stands."""
    assert kinds_of(TEXT) == Counter(
        {"files": 1, "lines": 15, "docstring": 4, "import": 3, "logic": 3, "blank": 5}
    )


def test_module_that_a_tool_wrote_is_generated() -> None:
    """The words of `tools/write_messages.py` mark its modules."""
    assert is_generated('"""Messages.\n\nWritten by tools/write_messages.py from a schema.\n"""\n')
    assert not is_generated(TEXT)
