"""Summaries of docstrings that read as riddles."""

import ast

import pytest

from tools.prose import candidates


def found_in(summary: str) -> list[str]:
    """The rules that find the summary of a module."""
    tree = ast.parse(f'"""{summary}"""')
    return [rule for _, rules in candidates([tree]) for rule in rules]


@pytest.mark.parametrize(
    ("summary", "rules"),
    [
        ("It is told of nobody.", ["begins with a pronoun", "speech", "is archaic"]),
        ("What is left of it.", ["begins with a question", "refers to no noun"]),
        ("One that is as is usual here.", ["begins with a pronoun", "is inverted"]),
        ("A timer that is none, rings in vain.", ["is archaic", "denies"]),
    ],
)
def test_riddle_is_found_by_two_rules(summary: str, rules: list[str]) -> None:
    """Each rule finds its kind, whatever stands beside it."""
    found = found_in(summary)
    assert all(any(rule in each for each in found) for rule in rules), found


@pytest.mark.parametrize(
    "summary",
    [
        "Close a connection.\n\nWhat is told of it follows here.",
        "What a client sends.",
        "One connection to a broker.",
    ],
)
def test_plain_summary_is_no_candidate(summary: str) -> None:
    """Only the first paragraph counts, and one rule alone may err."""
    assert found_in(summary) == []
