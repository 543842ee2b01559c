"""Results of several clients as one Markdown page: a table, and what each does differently."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.running import Ending
from coordinator_sim_conformance.verdicts.results import RunResult
from coordinator_sim_conformance.verdicts.standing import Standing

Differences = Mapping[str, Mapping[str, str]]
"""Client and case id -> what the client does instead, in one sentence."""

_SIGNS: Final = {
    Standing.PASSED: "yes",
    Standing.FAILED: "**no**",
    Standing.SKIPPED: "-",
    Standing.QUIRK: "other",
    Standing.UNKNOWN: "?",
}
_DIFFER: Final = (Standing.FAILED, Standing.QUIRK, Standing.UNKNOWN)
_UNIQUE: Final = re.compile(r"-([0-9a-f]{4})[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f-]{22}")
"""The random part of a member id, of which four digits tell two apart."""
_MOST_LINES: Final = 12
_WIDEST: Final = 140


def read_differences(path: Path) -> Differences:
    """Return the sentences of a TOML file: a table for each client, a line for each case.

    Raises:
        ConfigError: it is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from None


def summary_of(results: Sequence[RunResult], differences: Differences) -> str:
    """Return the page.

    Args:
        results: A run of each client, all of the same cases.
        differences: A sentence for each case that a client does not pass.

    Raises:
        ConfigError: a sentence is missing, or is of a case that passes.
    """
    for result in results:
        _check(result, differences.get(result.target.name, {}))
    lines = [
        "| client | version | judged | passed | differs | skipped |",
        "|---|---|---|---|---|---|",
    ]
    for result in results:
        counts = Counter(result.standing(each) for each in result.endings)
        differs = sum(counts[each] for each in _DIFFER)
        lines.append(
            f"| {result.target.name} | {result.target.version} | {result.at[:10]} "
            f"| {counts[Standing.PASSED]} | {differs} | {counts[Standing.SKIPPED]} |"
        )
    lines += ["", *_table(results)]
    for result in results:
        lines += _told(result, differences.get(result.target.name, {}))
    return "\n".join(lines) + "\n"


def _check(result: RunResult, sentences: Mapping[str, str]) -> None:
    differs = {each.case_id for each in result.endings if result.standing(each) in _DIFFER}
    name = result.target.name
    for case_id in sorted(differs - set(sentences)):
        raise ConfigError(f"{name} does not pass {case_id}: say in a sentence what it does instead")
    for case_id in sorted(set(sentences) - differs):
        raise ConfigError(f"{name} passes {case_id}, or skips it: take its sentence out")


def _table(results: Sequence[RunResult]) -> Iterator[str]:
    names = " | ".join(result.target.name for result in results)
    yield f"| requirement | what must be seen | {names} |"
    yield "|---|---|" + "---|" * len(results)
    endings = [{each.case_id: each for each in result.endings} for result in results]
    for row in results[0].endings:
        cells = [
            _SIGNS[result.standing(found[row.case_id])] if row.case_id in found else ""
            for result, found in zip(results, endings, strict=True)
        ]
        yield f"| {row.case_id} | {row.title} | {' | '.join(cells)} |"


def _told(result: RunResult, sentences: Mapping[str, str]) -> Iterator[str]:
    """Yield what a client does differently, with what was seen."""
    yield f"\n## {result.target.name} {result.target.version}"
    lacking = [each for each in result.endings if result.standing(each) is Standing.SKIPPED]
    if lacking:
        yield "\nNot played:\n"
        yield from (f"- {each.case_id}: {each.reason}." for each in lacking)
    differing = [each for each in result.endings if each.case_id in sentences]
    if not differing:
        yield "\nEvery case that was played passes."
    for each in differing:
        yield f"\n### {each.case_id}: {each.title}\n"
        yield sentences[each.case_id]
        yield f"\nWanted: {_short(each.expectation)}. Seen: {_short(each.came)}\n"
        yield "```text"
        yield from _evidence(each)
        yield "```"


def _evidence(ending: Ending) -> Iterator[str]:
    """Yield the lines of the wire up to what was wrong, or the last ones."""
    lines = [_short(line) for line in ending.transcript]
    came = _short(ending.came)
    found = [n for n, line in enumerate(lines) if came and came in line]
    last = found[-1] if found else len(lines) - 1
    shown = lines[: last + 1]
    if len(shown) > _MOST_LINES:
        shown = [*shown[:3], "        ...", *shown[3 - _MOST_LINES :]]
    yield from shown


def _short(line: str) -> str:
    """A line with shorter member ids, and not too wide."""
    line = _UNIQUE.sub(r"-\1", line)
    return line if len(line) <= _WIDEST else f"{line[:_WIDEST]}..."
