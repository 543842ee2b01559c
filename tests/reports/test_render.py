import pytest

pytest.importorskip("jinja2", reason="needs the spark extra")

from coordinator_sim_reports.comparison import reading_order
from coordinator_sim_reports.formats import (
    format_count,
    format_duration,
    format_seconds,
    format_share,
    mark_quality,
)


@pytest.mark.parametrize(
    ("quality", "shown"), [("exact", "4.0 s"), ("bound", "≤ 4.0 s"), ("estimate", "~ 4.0 s")]
)
def test_a_value_carries_the_mark_of_its_quality(quality: str, shown: str) -> None:
    """A bound and an estimate are seen to be none of them exact."""
    assert mark_quality("4.0 s", quality) == shown


def test_an_unknown_value_is_not_zero() -> None:
    """What nobody can know is n/a, whatever the quality of its family."""
    assert mark_quality(format_seconds(None), "bound") == "n/a"
    assert [format_count(None), format_share(None), format_duration(None)] == ["n/a"] * 3


def test_consumer_groups_come_before_connect() -> None:
    """The order is that of the page: consumer, Connect, the rest; then by scenario."""
    kinds = ["unknown", "connect", "consumer"]
    rows = [{"protocol_type": kind, "scenario": "s", "assignor": "a"} for kind in kinds]
    ordered = sorted(rows, key=reading_order)
    assert [row["protocol_type"] for row in ordered] == ["consumer", "connect", "unknown"]


def test_units_follow_the_size_of_a_value() -> None:
    """Durations and shares are shown as a reader would say them."""
    shown = [format_duration(value) for value in (12, 1_500, 119_000, 150_000)]
    assert shown == ["12 ms", "1.5 s", "119.0 s", "2.5 min"]
    assert [format_share(value) for value in (0.5, 0.995, 1)] == ["50.0 %", "99.50 %", "100.0 %"]
    assert [format_seconds(value) for value in (0, 2.345, 12.34, 12_345)] == [
        "0",
        "2.35",
        "12.3",
        "12,345",
    ]
    assert format_count(2.5) == "2.5"
