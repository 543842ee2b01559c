"""A whole log in the words of each release: read back without a rest, and like real ones."""

import re
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.logtext.reading.envelopes import peel
from coordinator_sim.logtext.reading.instants import InstantReader
from coordinator_sim.logtext.reading.messages import find
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.logtext.reading.text import clean
from coordinator_sim.logtext.wordings.reasons import RULES
from tests.unit.logtext.tour import tour

SAMPLES = Path(__file__).resolve().parents[4] / "shared" / "samples" / "broker-logs"
RANGES = {"0.10.2": "0.9-0.10", "2.8": "2.8", "3.9": "3.2-3.9", "4.4": "4.x"}
SEEN = {
    "0.10.2": ("prepare", "stabilized", "assignment"),
    "2.8": (
        *("stabilized", "empty", "failed", "left-2.4", "group-loaded"),
        *("empty-assignment", "empty-assignment-sent", "elected", "load-scheduled", "load-done"),
    ),
    "3.9": (
        *("stabilized", "assignment", "empty", "failed", "id-assigned", "id-added"),
        *("empty-assignment", "empty-assignment-sent", "elected", "load-scheduled", "load-done"),
    ),
    "4.4": ("empty", "id-assigned", "pending-joins"),
}
"""The messages of each release that somebody has published."""
SEEN_REASONS = {
    "2.8": ("adding new member", "removing member"),
    "3.9": ("Adding new member", "removing member"),
}


@pytest.mark.parametrize("profile", list(RANGES))
def test_the_importer_knows_every_line(profile: str) -> None:
    """No line of any release is left over, and the wording tells the release."""
    summary = IngestSummary()
    lines = tour(profile)

    list(parse_broker_log(lines, source_ref="server.log", tz=UTC, summary=summary))

    assert (0, len(lines)) == (summary.unparsed, summary.parsed + summary.known)
    assert (RANGES[profile],) == summary.version_ranges


@pytest.mark.parametrize("profile", list(SEEN))
def test_lines_have_the_shape_of_published_ones(profile: str) -> None:
    """What varies taken out, our main messages are those in logs that people published."""
    if not SAMPLES.is_dir():
        pytest.skip("no folder shared/samples/broker-logs beside the project")
    published = {
        shape for path in sorted(SAMPLES.glob("*.log")) for _, shape in shapes(read_lines(path))
    }

    ours = dict.fromkeys(shapes(iter(tour(profile))))

    names = {name for name, _ in ours}
    assert set(SEEN[profile]) <= names
    for name, shape in ours:
        if name in SEEN[profile] and "MemberMetadata" not in shape:
            assert shape in published, name


@pytest.mark.parametrize("profile", list(SEEN_REASONS))
def test_reasons_have_the_shape_of_published_ones(profile: str) -> None:
    """The two most frequent reasons read as in logs that people published."""
    if not SAMPLES.is_dir():
        pytest.skip("no folder shared/samples/broker-logs beside the project")
    published = {
        shape for path in sorted(SAMPLES.glob("*.log")) for shape in reasons(read_lines(path))
    }

    ours = {
        shape
        for shape in reasons(iter(tour(profile)))
        if shape.lower().startswith(tuple(map(str.lower, SEEN_REASONS[profile])))
    }

    assert ours
    assert ours <= published


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a sample."""
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from file


def shapes(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """The template and the fixed words of every line of a coordinator that is whole."""
    reader = InstantReader(UTC)
    for line in lines:
        envelope = peel(clean(line), reader)
        found = find(envelope.message)
        if "coordinator" in envelope.logger and found is not None:
            template, match = found
            bare = re.sub(r"^\[[^\]]*\]:? ", "", without(envelope.message, match))
            yield template.name, bare


def reasons(lines: Iterator[str]) -> Iterator[str]:
    """The fixed words of every reason given."""
    for line in lines:
        found = re.search(r"\(reason: (.*)\)\.? \(", line)
        if found is None:
            continue
        text, cut, _ = found[1].partition("; client reason: ")
        for rule in RULES:
            match = rule.pattern.match(text)
            if match is not None:
                yield without(text, match) + cut
                break


def without(text: str, match: re.Match[str]) -> str:
    """The text without what the groups of a match hold."""
    spans = sorted(match.span(name) for name, value in match.groupdict().items() if value)
    kept, at = [], 0
    for start, end in spans:
        if start >= at:
            kept.append(text[at:start])
            at = end
    return "…".join([*kept, text[at:]])


def test_a_static_member_that_returns_replaces_its_former_id() -> None:
    """The id that the line names is the one that a later line fences."""
    text = "\n".join(tour("4.4"))

    replaced = re.search(r"previously mapped member (\S+) with", text)
    fenced = re.search(r"Request memberId=(\S+) for static", text)

    assert replaced is not None
    assert fenced is not None
    assert replaced[1] == fenced[1]
