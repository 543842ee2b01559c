"""Baselines: TOML files of known gaps, an id or `id@profile` and the reason.

A known gap that does not pass is no failure; one that passes is, so that the file stays true.
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.client_cases.case import CLIENTS
from coordinator_sim_conformance.registry import Identified
from coordinator_sim_conformance.requirements import TROGDOR
from coordinator_sim_conformance.running import NOT_PASSED, Ending, Verdict
from coordinator_sim_conformance.verdicts.quoting import quoted
from coordinator_sim_conformance.verdicts.results import RunResult
from coordinator_sim_conformance.verdicts.standing import Standing
from coordinator_sim_conformance.verdicts.told import summary

Gaps = Mapping[str, str]
"""Id, or `id@profile`, and why the case does not pass there; the second form wins."""


def read_baseline(path: Path, cases: Iterable[Identified]) -> Gaps:
    """Return the known gaps of a file.

    Args:
        path: File to read.
        cases: Cases that there are.

    Raises:
        ConfigError: it is no TOML, a reason is missing, or a case does not exist, in one line.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f'{path}: {error}; wanted are lines like "JOIN-001@4.4" = "why", keys in quotes'
        ) from None
    known = {case.case_id: _profiles_of(case) for case in cases}
    for key, reason in table.items():
        case_id, at, profile = key.partition("@")
        if not isinstance(reason, str) or not reason.strip():
            raise ConfigError(
                f'{path}: {key}: wants a reason, "{key}" = "why"; ids with a dot go in quotes'
            )
        if case_id not in known:
            raise ConfigError(f"{path}: no case {case_id!r}; `conformance list` prints the ids")
        if at and profile not in known[case_id]:
            raise ConfigError(
                f"{path}: {case_id} is not played as {profile!r}: use one of "
                f"{', '.join(known[case_id])}"
            )
    return table


def _profiles_of(case: Identified) -> tuple[str, ...]:
    requirement = case.requirement
    return requirement.profiles or (TROGDOR.lower() if requirement.is_of_trogdor else CLIENTS,)


def key_of(ending: Ending, gaps: Gaps) -> str | None:
    """Return the key under which the gaps name this ending; None when they do not."""
    exact = _exact(ending)
    if exact in gaps:
        return exact
    return ending.case_id if ending.case_id in gaps else None


def with_gap(ending: Ending, gaps: Gaps) -> Ending:
    """Return the ending with the reason of its known gap, if it is one."""
    key = key_of(ending, gaps)
    return ending if key is None else replace(ending, known_gap=gaps[key])


def baseline_text(result: RunResult, before: Gaps) -> str:
    """Return a baseline with which this run has no failure.

    Gaps of before stay, reason and all, if they are still open or were not played.

    Args:
        result: The run.
        before: The baseline so far.
    """
    played: dict[str, list[Ending]] = {}
    for ending in result.endings:
        if ending.verdict is not Verdict.SKIPPED:
            played.setdefault(ending.case_id, []).append(ending)
    gaps: dict[str, str] = {}
    for key, why in before.items():
        case_id, _, profile = key.partition("@")
        met = [each for each in played.get(case_id, []) if profile in {"", each.profile}]
        still_open = [ending for ending in met if is_open(ending)]
        if still_open == met:
            gaps[key] = why
            continue
        for ending in still_open:
            gaps.setdefault(_exact(ending), why)
    for ending in result.endings:
        if is_open(ending) and key_of(ending, gaps) is None:
            gaps[_exact(ending)] = _why(ending)
    lines = [f"{quoted(key)} = {quoted(why)}\n" for key, why in gaps.items()]
    return "# Known gaps: an id, or id@profile, and the reason. One that passes is an error.\n" + (
        "".join(lines)
    )


def is_open(ending: Ending) -> bool:
    """Whether a case did not pass, and was not skipped either."""
    return ending.verdict in NOT_PASSED


def _exact(ending: Ending) -> str:
    return f"{ending.case_id}@{ending.profile}"


def _why(ending: Ending) -> str:
    """Return a reason that a reader can begin with."""
    return summary(ending, Standing.FAILED)
