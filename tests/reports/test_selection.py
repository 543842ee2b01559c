"""Rows that a page shows, chosen from parts of a table: the parts do not matter."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim_reports import selection
from coordinator_sim_reports.selection import WrittenTable

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("trace_id", "cluster_id", "group_id", "resource")),
        *((name, pa.int64()) for name in ("from_us", "to_us", "row")),
        ("member_key", pa.string()),
    ]
)
Row = dict[str, Any]


def row(number: int, group: str, from_us: int, lasts_us: int | None, resource: str) -> Row:
    """An interval of ownership."""
    return {
        "trace_id": "t",
        "cluster_id": "c",
        "group_id": group,
        "resource": resource,
        "from_us": from_us,
        "to_us": None if lasts_us is None else from_us + lasts_us,
        "row": number,
        "member_key": "m",
    }


TABLES = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 5),
        st.none() | st.integers(0, 5),
        st.sampled_from(("p0", "p1", "p2")),
    ),
    max_size=30,
).map(lambda drawn: [row(number, *each) for number, each in enumerate(drawn)])


def parts(rows: list[Row], size: int) -> list[pa.Table]:
    """A table in parts of so many rows; the first has none."""
    cut = [rows[at : at + size] for at in range(0, len(rows), size)]
    return [pa.Table.from_pylist(each, SCHEMA) for each in ([], *cut)]


def lasts_us(each: Row) -> float:
    """How long an interval lasts; one without an end comes behind all others."""
    return float("-inf") if each["to_us"] is None else float(each["to_us"] - each["from_us"])


@given(TABLES, st.integers(1, 7), st.integers(1, 9))
def test_the_first_rows_of_parts_are_those_of_the_whole(
    rows: list[Row], size: int, limit: int
) -> None:
    """Descending behind a minus, nulls last."""
    found = selection.first_rows(parts(rows, size), limit, "-to_us", "row").to_pylist()
    order = sorted(rows, key=lambda each: (each["to_us"] is None, -(each["to_us"] or 0)))
    assert found == order[:limit]


@given(TABLES, st.integers(1, 7), st.integers(1, 4))
def test_each_group_has_its_own_longest_rows(rows: list[Row], size: int, limit: int) -> None:
    """And says how many it has in all."""
    own = [each | {"member_id": f"{each['row']:03}"} for each in rows]
    schema = SCHEMA.append(pa.field("member_id", pa.string()))
    waits = [
        pa.Table.from_pylist(own[at : at + size], schema) for at in range(0, len(own) + 1, size)
    ]
    found = selection.drawn_waits(waits, limit)
    by_group: defaultdict[str, list[Row]] = defaultdict(list)
    for each in own:
        by_group[each["group_id"]].append(each)
    expected = [
        each | {"of_rows": len(of_group)}
        for of_group in by_group.values()
        for each in sorted(
            of_group, key=lambda each: (-lasts_us(each), each["from_us"], each["member_id"])
        )[:limit]
    ]
    expected.sort(key=lambda each: (each["from_us"], each["group_id"], each["member_id"]))
    assert found == expected


def test_owners_are_of_the_resources_with_most_of_them(tmp_path: Path) -> None:
    """Of the groups that are drawn, and of the runs that the page is of."""
    rows = [row(0, "a", 0, 5, "p0"), row(1, "a", 5, 1, "p1"), row(2, "a", 6, 3, "p1")]
    others = [row(3, "b", 0, 5, "p1"), row(4, "a", 0, 9, "p1") | {"trace_id": "other"}]
    for number, each in enumerate(parts([*rows, *others], 2)):
        pq.write_table(each, tmp_path / f"part-{number}.parquet")
    groups = pa.Table.from_pylist([{"trace_id": "t", "cluster_id": "c", "group_id": "a"}])

    found = selection.drawn_owners(WrittenTable(tmp_path, ["t"]), groups, 1, 1)

    assert found == [rows[2] | {"of_rows": 2}]
