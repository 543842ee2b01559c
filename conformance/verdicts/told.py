"""An ending in words, the same on the terminal, in JUnit and in TAP."""

from collections.abc import Iterator

from coordinator_sim_conformance.running import Ending
from coordinator_sim_conformance.verdicts.standing import EXCUSED, Standing

_HEX_SHOWN = 96
"""Digits of a frame that text shows; result files and the matrix have all of them."""
_CAME_SHOWN = 120
"""Longest text that came which one line still shows; the whole is with the details."""


def summary(ending: Ending, standing: Standing) -> str:
    """Return in one line why an ending is not simply passed."""
    if standing is Standing.GAP_CLOSED:
        return f"the known gap is closed ({ending.known_gap}): take it out of the baseline"
    if standing in EXCUSED:
        return f"{standing.value}: {ending.known_gap}"
    if standing is Standing.SKIPPED:
        return ending.reason
    said = ending.reason
    if ending.expectation:
        is_short = 0 < len(ending.came) <= _CAME_SHOWN
        said = f"{ending.expectation}: {f'came {_came(ending)}' if is_short else said}"
    if ending.timing:
        said += f" (timing, with margins times {ending.margins})"
    return f"{said} (a quirk; --strict counts it)" if standing is Standing.QUIRK else said


def details(ending: Ending) -> Iterator[str]:
    """Yield all that is known of an ending that failed, line by line."""
    yield from ending.transcript
    for frame in ending.frames:
        shown = frame.hex if len(frame.hex) <= _HEX_SHOWN else f"{frame.hex[:_HEX_SHOWN]}..."
        yield f"{frame.at_ms} ms {frame.direction} {frame.api} {frame.version} {shown}"
    facts = {
        "expected": ending.expectation,
        "came": _came(ending),
        "reason": ending.reason,
        "timing": f"with margins times {ending.margins}" if ending.timing else "",
        "source": "\n".join(ending.sources),
        "again": ending.again,
    }
    for name, text in facts.items():
        for number, line in enumerate(text.splitlines()):
            yield f"{'' if number else name + ':':<10}{line}"


def _came(ending: Ending) -> str:
    return "nothing" if ending.came == "-" else ending.came
