"""Tables of the page about costs: by day, by deploy, and storms of rebalances."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from coordinator_sim_reports.formats import format_count, format_seconds
from coordinator_sim_reports.group_table import Cell, Column, cell_of, group_key
from coordinator_sim_reports.run_labels import RunLabel

Row = Mapping[str, Any]

_STOPPED: Final = "stopped_quality"
_FIGURES: Final = (
    Column("rebalances", "rebalances", format_count),
    Column("rebalancing_s", "rebalancing (s)", format_seconds),
    Column(
        "paused_s",
        "paused (member·s)",
        format_seconds,
        _STOPPED,
        "members that had given up everything, until their next assignment",
    ),
    Column("stopped_s", "stopped (s)", format_seconds, _STOPPED, "nobody owned anything"),
    Column(
        "unowned_s",
        "unowned (partition·s)",
        format_seconds,
        meaning="time without an owner, summed over resources",
    ),
    Column("moved", "moved", format_count),
    Column("voluntary", "owner stayed", format_count, meaning="moved although the owner stayed"),
    Column("needless", "needless", format_count, meaning="beyond the fewest for a balanced result"),
    Column("reprocessed", "read again", format_count, meaning="records"),
)
_EPOCH: Final = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Name:
    """A cell that names a row: text, the number to sort by, and the anchor that it leads to."""

    text: str
    value: float | None = None
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class CostTable:
    """A table of costs.

    Args:
        names: Headings of the cells that name a row.
        columns: Columns of figures that some row knows.
        unknown: Headings of the columns that none knows.
        rows: Pairs of names and figures.
        total: Rows that there are, of which the costliest are shown.
    """

    title: str
    names: Sequence[str]
    columns: Sequence[Column]
    unknown: Sequence[str]
    rows: Sequence[tuple[Sequence[Name], Sequence[Cell]]]
    total: int


def cost_tables(
    costs: Sequence[Row],
    storms: Sequence[Row],
    labels: Mapping[str, RunLabel],
    anchors: Mapping[tuple[str, ...], str],
) -> list[CostTable]:
    """Return the tables of costs; one without rows is absent.

    Args:
        costs: Rows of the table `costs`.
        storms: Rows of the table `storms`.
        labels: Labels of the runs by trace id.
        anchors: Anchor of each group's section, by its key.
    """

    def group(row: Row) -> Name:
        return Name(row["group_id"], anchor=anchors.get(group_key(row), ""))

    def run(row: Row) -> Name:
        return Name(labels[row["trace_id"]].name)

    def since(row: Row) -> Name:
        return Name(labels[row["trace_id"]].when(row["first_us"]), row["first_us"])

    days = [row for row in costs if row["scope"] == "day"]
    deploys = [row for row in costs if row["scope"] == "deploy"]
    found = (
        _table("By day", ("day", "run"), days, lambda row: [_day(row, labels), run(row)]),
        _table(
            "By deploy",
            ("group", "run", "deploy", "from"),
            deploys,
            lambda row: [
                group(row),
                run(row),
                Name(str(row["deploy_no"]), row["deploy_no"]),
                since(row),
            ],
        ),
        _table(
            "Storms and loops",
            ("group", "run", "kind", "from", "lasted", "members", "the first"),
            storms,
            lambda row: [group(row), run(row), Name(row["kind"]), since(row), *_storm(row)],
        ),
    )
    return [table for table in found if table.rows]


def _table(
    title: str, names: Sequence[str], rows: Sequence[Row], named: Callable[[Row], Sequence[Name]]
) -> CostTable:
    told = {each.name: any(row[each.name] is not None for row in rows) for each in _FIGURES}
    columns = [each for each in _FIGURES if told[each.name]]
    full = [{**row, _STOPPED: _quality(row)} for row in rows]
    return CostTable(
        title=title,
        names=names,
        columns=columns,
        unknown=[each.title for each in _FIGURES if not told[each.name]],
        rows=[(named(row), [cell_of(row, each) for each in columns]) for row in full],
        total=max((row["of_rows"] for row in rows), default=0),
    )


def _quality(row: Row) -> str:
    """Return how sure pauses and standstill are: without assignments they are upper bounds."""
    is_whole = row["unowned_s"] is not None and row["assigned"] == row["rebalances"]
    return "exact" if is_whole else "bound"


def _day(row: Row, labels: Mapping[str, RunLabel]) -> Name:
    """Return a day: its date, or of a simulation, which has no calendar, its number."""
    number = date.fromisoformat(row["day"]).toordinal()
    if labels[row["trace_id"]].is_simulated:
        return Name(f"day {number - _EPOCH.toordinal() + 1}", number)
    return Name(row["day"], number)


def _storm(row: Row) -> list[Name]:
    lasted_s = (row["last_us"] - row["first_us"]) / 1_000_000
    who = f" by {row['trigger_client']}" if row["trigger_client"] else ""
    return [
        Name(f"{format_seconds(lasted_s)} s", lasted_s),
        Name(format_count(row["members"]), row["members"]),
        Name(f"#{row['first_no']}, {row['trigger']}{who}"),
    ]
