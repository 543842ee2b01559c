"""Faults of clients that users reported, as faults of our models: data of `reports.toml`."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final

from coordinator_sim_conformance.museum.exhibit import Exhibit


@cache
def report_rows() -> tuple[dict[str, Any], ...]:
    """The rows of `reports.toml`, each with the scenario of the row that it is like."""
    folder = files("coordinator_sim_conformance").joinpath("museum")
    rows = tomllib.loads(folder.joinpath("reports.toml").read_text(encoding="utf-8"))["report"]
    by_id = {row["id"]: row for row in rows}
    return tuple({**by_id.get(row.pop("like", ""), {}), "fault": None, **row} for row in rows)


REPORT_BUGS: Final = tuple(
    Exhibit(
        row["id"],
        row["came"],
        f"coordinator_sim.clients.{row['fault']['module']}",
        row["fault"]["before"],
        row["fault"]["after"],
        f"report {row['id']}",
    )
    for row in report_rows()
    if row["fault"] is not None
)
"""In the order of the file; each is noticed by the scenario of its report."""
