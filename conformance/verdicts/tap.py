"""A run as TAP version 14, each failure with a block of YAML.

A known gap is `TODO`, which no reader of TAP counts as a failure; a broken quirk too, unless the
run is strict.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from coordinator_sim_conformance.running import Ending
from coordinator_sim_conformance.verdicts.quoting import printable, quoted
from coordinator_sim_conformance.verdicts.results import RunResult
from coordinator_sim_conformance.verdicts.standing import EXCUSED, Standing
from coordinator_sim_conformance.verdicts.told import summary

_TODO: Final = "TODO"
"""TAP's directive for a test that is expected to fail."""


def tap_text(result: RunResult) -> str:
    """Return the run as a stream of TAP 14."""
    lines = ["TAP version 14", f"1..{len(result.endings)}"]
    for number, ending in enumerate(result.endings, 1):
        lines += _told(number, ending, result.standing(ending))
    return "\n".join(lines) + "\n"


def _told(number: int, ending: Ending, standing: Standing) -> Iterator[str]:
    name = _plain(f"{ending.case_id} as {ending.profile}: {ending.title}")
    if standing is Standing.PASSED:
        yield f"ok {number} - {name}"
    elif standing is Standing.SKIPPED:
        yield f"ok {number} - {name} # SKIP {_plain(ending.reason)}"
    else:
        is_excused = standing in EXCUSED | {Standing.QUIRK}
        excuse = f" # {_TODO} {_plain(summary(ending, standing))}" if is_excused else ""
        yield f"not ok {number} - {name}{excuse}"
        yield from _block(ending, standing)


def _block(ending: Ending, standing: Standing) -> Iterator[str]:
    """Yield the YAML of one that did not pass, two blanks deep as TAP wants it."""
    yield "  ---"
    texts = {
        "message": summary(ending, standing),
        "severity": standing.value,
        "level": ending.level.value,
        "expected": ending.expectation,
        "came": ending.came,
        "again": ending.again,
    }
    for key, text in texts.items():
        if text:
            yield f"  {key}: {quoted(text)}"
    frames = [
        f"{each.at_ms} ms {each.direction} {each.api} {each.version} {each.hex}"
        for each in ending.frames
    ]
    yield from _listed("sources", ending.sources)
    yield from _listed("transcript", ending.transcript)
    yield from _listed("frames", frames)
    yield "  ..."


def _listed(key: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield f"  {key}:"
        yield from (f"    - {quoted(text)}" for text in texts)


def _plain(text: str) -> str:
    """Return the text on one line, with what TAP would read as a directive escaped."""
    return " ".join(printable(text).split()).replace("\\", "\\\\").replace("#", "\\#")
