"""Files in any order and envelope have the events of the log, and every line is counted."""

import json
from datetime import UTC
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.ingest.files import LogFileReader
from coordinator_sim.logtext.reading.block_reader import BlockReader
from coordinator_sim.logtext.reading.broker_log import BrokerLog
from coordinator_sim.trace.batches import Names

BROKER = "kafka.coordinator.group.GroupCoordinator"
KINDS = {
    "parsed": f"INFO [GroupCoordinator 1]: Stabilized group shop generation {{0}} ({BROKER})",
    "known": "INFO [Consumer clientId=c, groupId=shop] Cluster ID: Xk2-fLZQTJm4sZJ1QpVx2w "
    "(org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)",
    "unparsed": f"INFO [GroupCoordinator 1]: Something else of group shop {{0}} ({BROKER})",
    "other": "INFO Created log for partition orders-{0} (kafka.log.LogManager)",
}
STACK = "java.lang.IllegalStateException: x"
_LINES = st.lists(st.sampled_from(sorted(KINDS)), min_size=3, max_size=60)
_EXPORTS = ("lines", "json lines", "document", "pretty")


def exported(lines: list[str], form: str) -> str:
    """The lines in the form of an export."""
    entries = [{"message": line} for line in lines]
    if form == "lines":
        return "\n".join(lines)
    if form == "json lines":
        return "\n".join(map(json.dumps, entries))
    return json.dumps({"events": entries}, indent=2 if form == "pretty" else None)


def counted(text: str) -> tuple[dict[str, int], list[tuple[int | None, int]]]:
    """The counts of a file by kind of line, and the generations of its events with their times."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        path.write_text(text)
        log = BrokerLog("server.log", UTC)
        batches = BlockReader(log, Names()).read(LogFileReader(path, lambda _used: None).blocks())
        events = [(event.generation, event.ts_us) for batch in batches for event in batch.events()]
    summary = log.summary
    counts = {kind: getattr(summary, kind) for kind in (*KINDS, "continuations", "lines")}
    return {kind: count for kind, count in counts.items() if count}, events


@given(_LINES, st.sampled_from(_EXPORTS), st.booleans(), st.booleans())
def test_counts_add_up_and_order_does_not_matter(
    kinds: list[str], form: str, newest_first: bool, has_stacks: bool
) -> None:
    """What each line is counted as is known from how it was drawn."""
    lines = [
        f"[2024-05-13 10:{number // 60:02}:{number % 60:02},000] {KINDS[kind].format(number)}"
        for number, kind in enumerate(kinds)
    ]
    if has_stacks:
        lines = [f"{line}\n{STACK}" if form == "lines" else line for line in lines]
    expected = {kind: kinds.count(kind) for kind in KINDS}
    stacks = len(lines) if has_stacks and form == "lines" else 0
    expected["other"] += stacks
    expected["lines"] = len(lines) + stacks
    counts, events = counted(exported(lines[::-1] if newest_first else lines, form))
    assert counts == {kind: count for kind, count in expected.items() if count}
    assert events == counted("\n".join(lines))[1]
