"""Durations are read as java.time.Duration.parse reads them."""

import pytest

from coordinator_sim.kafka.java_durations import duration_ns

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT1H", 3600),
        ("P1DT2H3M4S", 86_400 + 7200 + 180 + 4),
        ("P2D", 172_800),
        ("pt-1m", -60),
        ("-PT1M", -60),
        ("PT+5S", 5),
    ],
)
def test_duration_counts_in_days_hours_minutes_and_seconds(text: str, seconds: int) -> None:
    """Letters of either case; a sign before the whole or before a number."""
    assert duration_ns(text) == seconds * SECOND


@pytest.mark.parametrize(
    ("text", "ns"), [("PT0.5S", SECOND // 2), ("PT-0,000000001S", -1), ("PT1.S", SECOND)]
)
def test_seconds_have_a_fraction_with_their_sign(text: str, ns: int) -> None:
    """Of up to nine digits, behind a dot or a comma."""
    assert duration_ns(text) == ns


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "P1Y", "1H", "PT1H2", "PT1.5H", "PT٣S", f"P{'9' * 19}D"]
)
def test_other_texts_are_no_durations(text: str) -> None:
    """Nothing but those, and no more seconds than a long holds."""
    assert duration_ns(text) is None
