"""Every recorded answer of Java's assignors is reproduced.

List order included, but for the server-side ones, whose answers are sets.
"""

from collections import Counter
from pathlib import Path

import pytest

from coordinator_sim.harness.assignor_cases import first_difference, parse_case

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (
            "consumer-assignors.jsonl",
            {"range": 69, "roundrobin": 68, "sticky": 217, "cooperative-sticky": 202},
        ),
        ("connect-incremental.jsonl", {"connect-incremental": 83}),
        ("sticky-4.4.0.jsonl", {"sticky": 74, "cooperative-sticky": 76}),
        ("server-assignors.jsonl", {"uniform": 173, "server-range": 64}),
    ],
)
def test_every_vector_agrees_with_java(file: str, expected: dict[str, int]) -> None:
    """No case of the golden files differs, and none is skipped."""
    counts: Counter[str] = Counter()
    for line in (GOLDEN / file).read_bytes().splitlines():
        case = parse_case(line)
        counts[case.assignor] += 1
        assert first_difference(case) is None
    assert counts == expected
