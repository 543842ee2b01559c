"""Implementations by requirements: result files as one HTML page that needs nothing else."""

import base64
import gzip
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.client_cases.case import CLIENTS
from coordinator_sim_conformance.registry import AnyCase
from coordinator_sim_conformance.requirements import TROGDOR, Level
from coordinator_sim_conformance.running import Ending, title_of
from coordinator_sim_conformance.verdicts.quoting import printable
from coordinator_sim_conformance.verdicts.results import RunResult
from coordinator_sim_conformance.verdicts.standing import RED, Standing

COORDINATORS: Final = "coordinators"
SUBJECTS: Final = (COORDINATORS, CLIENTS, TROGDOR.lower())
"""Whose requirements a matrix can be about."""

_SHOWN: Final = {
    Standing.PASSED: ("p", "✓ pass"),
    Standing.FAILED: ("f", "✗ FAIL"),
    Standing.SKIPPED: ("s", "○ skip"),
    Standing.UNKNOWN: ("u", "? unknown"),
    Standing.CRASHED: ("x", "✗ CRASHED"),
    Standing.HUNG: ("h", "✗ HUNG"),
    Standing.KNOWN_GAP: ("k", "≈ known gap"),
    Standing.KNOWN_CRASH: ("kx", "≈ known crash"),
    Standing.KNOWN_HANG: ("kh", "≈ known hang"),
    Standing.GAP_CLOSED: ("c", "! gap closed"),
    Standing.QUIRK: ("q", "~ quirk"),
}
"""Class and words of each standing; a sign beside the colour."""
_LEVELS: Final = ("must", "model", "quirk")


class Column(Struct, frozen=True):
    """One implementation: a run as one Kafka.

    Args:
        name: Name in the head of the table.
        result: The run.
        endings: How the run's cases of this profile ended, by id.
    """

    name: str
    result: RunResult
    endings: dict[str, Ending]


class Row(Struct, frozen=True, kw_only=True):
    """A row of the matrix: a case with its requirement in a sentence and its sources."""

    case_id: str
    area: str
    title: str
    level: Level
    is_quirk: bool
    sources: tuple[str, ...]


def row_of(case: AnyCase) -> Row:
    """Return what this suite tells of a case, which older result files may tell otherwise."""
    known = case.requirement
    return Row(
        case_id=case.case_id,
        area=known.area,
        title=title_of(case),
        level=known.level,
        is_quirk=known.is_quirk,
        sources=known.sources,
    )


def columns_of(results: Sequence[tuple[str, RunResult]], about: str = COORDINATORS) -> list[Column]:
    """Return a column for each run and profile, in the order given.

    Args:
        results: Runs, each with a label that tells runs of one target apart.
        about: One of `SUBJECTS`.

    Raises:
        ConfigError: no run has a case about that.
    """
    columns = [
        Column(
            _named(result, profile),
            result,
            {each.case_id: each for each in result.endings if each.profile == profile},
        )
        for _, result in results
        for profile in result.profiles
        if about == (profile if profile in SUBJECTS else COORDINATORS)
    ]
    if not columns:
        raise ConfigError(f"no result has cases about {about}: use --about with another subject")
    counts = Counter(column.name for column in columns)
    labels = {id(result): label for label, result in results}
    return [
        column
        if counts[column.name] == 1
        else replace(column, name=f"{column.name} ({labels[id(column.result)]})")
        for column in columns
    ]


def _named(result: RunResult, profile: str) -> str:
    name = f"{result.target.name} {result.target.version}".strip()
    return name if profile in SUBJECTS else f"{name} as {profile}"


def matrix_page(columns: Sequence[Column], known: Iterable[Row], title: str) -> str:
    """Return the page.

    Args:
        columns: Implementations.
        known: Cases in the order of rows. Of any other case, which follows them, the first file
            that has it tells.
        title: Title of the page.
    """
    rows = _rows(columns, known)
    folder = files("coordinator_sim_conformance.verdicts") / "page"
    template = Template((folder / "matrix.html").read_text(encoding="utf-8"))
    standings = [
        {case_id: column.result.standing(ending) for case_id, ending in column.endings.items()}
        for column in columns
    ]
    seen = {standing for found in standings for standing in found.values()}
    suites = ", ".join(sorted({column.result.suite_version for column in columns}))
    return template.substitute(
        title=_text(title),
        style=(folder / "matrix.css").read_text(encoding="utf-8"),
        script=(folder / "matrix.js").read_text(encoding="utf-8"),
        about=f"{len(rows)} cases, {len(columns)} implementations; suite {_text(suites)}.",
        columns=_facts(columns),
        verdicts="".join(
            f'<option value="{mark}">{_text(standing.value)}</option>'
            for standing, (mark, _) in _SHOWN.items()
            if standing in seen
        ),
        levels="".join(f"<option>{level}</option>" for level in _LEVELS),
        heads="".join(map(_head, columns, standings)),
        bodies="\n".join(_bodies(rows, standings)),
        evidence=_packed(rows, columns),
    )


def _rows(columns: Sequence[Column], known: Iterable[Row]) -> list[Row]:
    """One row for each case that any column has."""
    played = {case_id for column in columns for case_id in column.endings}
    told = {row.case_id: row for row in known if row.case_id in played}
    for column in columns:
        for case_id, each in column.endings.items():
            if case_id not in told:
                told[case_id] = Row(
                    case_id=case_id,
                    area=each.area,
                    title=each.title,
                    level=each.level,
                    is_quirk=each.is_quirk,
                    sources=each.sources,
                )
    rows = list(told.values())
    areas = {area: place for place, area in enumerate(dict.fromkeys(row.area for row in rows))}
    return sorted(rows, key=lambda row: areas[row.area])


def _head(column: Column, standings: dict[str, Standing]) -> str:
    counts = Counter(standings.values())
    played = len(standings) - counts[Standing.SKIPPED]
    passed = counts[Standing.PASSED]
    # Rounded down: only what passes all of it is 100 %.
    share = f"{passed * 1000 // played / 10:g} %" if played else "nothing played"
    others = "".join(
        f'<small class="{"bad" if standing in RED else ""}">{counts[standing]} {standing.value}'
        "</small>"
        for standing in Standing
        if counts[standing] and standing is not Standing.PASSED
    )
    name = _text(column.name)
    return (
        f'<th scope="col" data-name="{name}">{name}<small>{passed} of {played} passed</small>'
        f"<small>{share}</small>{others}</th>"
    )


def _bodies(rows: Sequence[Row], standings: Sequence[dict[str, Standing]]) -> Iterable[str]:
    """Yield a body for each area: a line of sums, then its requirements."""
    numbers: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        numbers.setdefault(row.area, []).append(number)
    for area, of_area in numbers.items():
        sums = "".join(_sum([rows[each].case_id for each in of_area], one) for one in standings)
        yield f'<tbody><tr class="area"><th scope="rowgroup">{_text(area)}</th>{sums}</tr>'
        for number in of_area:
            yield _row(number, rows[number], standings)
        yield "</tbody>"


def _sum(case_ids: Sequence[str], standings: dict[str, Standing]) -> str:
    found = [standings[each] for each in case_ids if each in standings]
    played = len(found) - found.count(Standing.SKIPPED)
    return f"<td>{found.count(Standing.PASSED)}/{played}</td>" if played else "<td></td>"


def _row(number: int, row: Row, standings: Sequence[dict[str, Standing]]) -> str:
    levels = [row.level.value, *(["quirk"] if row.is_quirk else [])]
    cells = []
    for found in standings:
        standing = found.get(row.case_id)
        mark, words = ("", "") if standing is None else _SHOWN[standing]
        cells.append(f"<td><button class={mark}>{words}</button></td>" if words else "<td></td>")
    case_id = _text(row.case_id)
    return (
        f'<tr data-row={number} data-id="{case_id}" data-area="{_text(row.area)}" '
        f'data-level="{" ".join(levels)}"><th scope="row"><code>{case_id}</code> '
        f'{_text(row.title)} <span class="level">{", ".join(levels)}</span></th>'
        f"{''.join(cells)}</tr>"
    )


def _facts(columns: Sequence[Column]) -> str:
    """What is known of each implementation, once for each run."""
    lines = ["<dl>"]
    for result in {id(column.result): column.result for column in columns}.values():
        name = f"{result.target.name} {result.target.version}".strip()
        facts = {"judged": result.at, "suite": result.suite_version, **result.target.facts}
        told = "; ".join(f"{key}: {value}" for key, value in facts.items())
        lines.append(f"<dt>{_text(name)}</dt><dd>{_text(told)}</dd>")
    return "\n".join([*lines, "</dl>"])


def _packed(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    """The evidence of every cell as JSON, each text in it once, compressed, in base64."""
    texts: dict[str, int] = {}

    def numbered(text: str) -> int:
        return texts.setdefault(printable(text), len(texts))

    def cell_of(row: Row, ending: Ending, standing: Standing) -> dict[str, object]:
        # Bytes of what passed would make up most of the page; result files have them.
        frames = () if standing is Standing.PASSED else ending.frames
        facts = {
            "requirement": row.title,
            "known gap": ending.known_gap,
            "expected": ending.expectation,
            "came": ending.came,
            "reason": ending.reason,
            "timing": f"judged with margins times {ending.margins}" if ending.timing else "",
        }
        return {
            "standing": standing.value,
            "facts": [(name, numbered(text)) for name, text in facts.items() if text],
            "transcript": [numbered(line) for line in ending.transcript],
            "frames": [
                numbered(f"{each.at_ms} ms {each.direction} {each.api} {each.version} {each.hex}")
                for each in frames
            ],
            "again": numbered(ending.again),
        }

    cells = [
        [
            cell_of(row, ending, column.result.standing(ending))
            if (ending := column.endings.get(row.case_id)) is not None
            else None
            for column in columns
        ]
        for row in rows
    ]
    sources = [[numbered(source) for source in row.sources] for row in rows]
    data = msgspec.json.encode({"cells": cells, "sources": sources, "texts": list(texts)})
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


def _text(text: str) -> str:
    return escape(printable(text))
