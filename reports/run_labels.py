"""Names and times of the runs of a page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from typing import Any, Final

Row = Mapping[str, Any]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RunLabel:
    """How a page shows one run.

    Args:
        name: What the run is called; no two runs of a page have one name.
        origin_us: Instant of the trace that its times count from; None for calendar time.
        start_us: Start of the run in the trace: 0 of a simulation, else the first event.
        end_us: Last event of the trace; not before the start.
        is_simulated: Whether the run has no calendar.
        path: Directory of the trace.
    """

    name: str
    origin_us: int | None
    start_us: int
    end_us: int
    is_simulated: bool
    path: str

    @property
    def begins(self) -> str:
        """When the run began, for readers."""
        if self.is_simulated:
            return "0 s of virtual time"
        return f"{format_date(self.start_us)} UTC"

    def when(self, ts_us: int) -> str:
        """Format an instant of the run: seconds since its start, or UTC date and time."""
        if self.origin_us is None:
            return format_date(ts_us)
        return f"{(ts_us - self.origin_us) / 1e6:,.3f} s"

    def date(self, ts_us: int) -> str:
        """Format an instant as UTC date and time; empty for a simulated run."""
        return "" if self.is_simulated else format_date(ts_us)


def run_labels(runs: Sequence[Row], *, is_compared: bool) -> dict[str, RunLabel]:
    """Return the labels of runs by trace id.

    A simulation starts at 0 and any other run at its first event. Times are calendar times unless
    the runs are compared, or some of them are simulations, which have no calendar.

    Args:
        runs: Rows of the table `runs`.
        is_compared: Whether the runs are set beside each other.
    """
    is_relative = is_compared or any(map(_is_simulated, runs))
    return {
        run["trace_id"]: _label(run, name, is_relative=is_relative)
        for run, name in zip(runs, _names(runs), strict=True)
    }


def choice_of(run: Row) -> tuple[object, ...]:
    """Return the key shared by worlds of one scenario and assignor; other traces get their own."""
    if run["source"] != "sim" or run["seed"] is None:
        return (run["trace_id"],)
    return (run["scenario"], run["assignor"], run["profile"])


def one_world_each(runs: Sequence[Row]) -> list[Row]:
    """Return the runs whose groups are listed: per scenario and assignor the lowest seed.

    Worlds of one choice differ only by their random draws, so one of them is enough.
    """
    chosen: dict[tuple[object, ...], Row] = {}
    for run in sorted(runs, key=lambda run: run["seed"] or 0):
        chosen.setdefault(choice_of(run), run)
    traces = {run["trace_id"] for run in chosen.values()}
    return [run for run in runs if run["trace_id"] in traces]


def are_beside(runs: Sequence[Row], *, is_compared: bool) -> bool:
    """Whether a page sets runs side by side: as asked, or simulations and real ones are in it."""
    return len(runs) > 1 and (is_compared or len(set(map(_is_simulated, runs))) > 1)


def format_date(ts_us: int) -> str:
    """Format an instant since 1970 as UTC date and time, to the millisecond."""
    moment = _EPOCH + timedelta(microseconds=ts_us)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"


def _is_simulated(run: Row) -> bool:
    return bool(run["source"] == "sim")


def _label(run: Row, name: str, *, is_relative: bool) -> RunLabel:
    is_simulated = _is_simulated(run)
    start_us = 0 if is_simulated else run["first_ts_us"] or 0
    return RunLabel(
        name=name,
        origin_us=start_us if is_relative else None,
        start_us=start_us,
        end_us=max(start_us, run["last_ts_us"] or 0),
        is_simulated=is_simulated,
        path=run["path"],
    )


def _names(runs: Sequence[Row]) -> list[str]:
    """Return the runs' names; where several have one, with their directories."""
    plain = [_plain_name(run) for run in runs]
    paths = [PurePath(run["path"]) for run in runs]
    for shown in ([path.name for path in paths], [str(path) for path in paths]):
        taken = Counter(plain)
        named = [
            f"{name}, {place}" if taken[name] > 1 else name
            for name, place in zip(plain, shown, strict=True)
        ]
        if len(set(named)) == len(named):
            break
    return named


def _plain_name(run: Row) -> str:
    which = run["assignor"] if _is_simulated(run) else run["cluster_id"]
    return ", ".join(part for part in (run["scenario"], which) if part)
