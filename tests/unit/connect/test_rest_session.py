"""Everything that was asked of a real worker (4.3.1), asked of ours in the same order.

The recording is one session of more than a hundred requests: connectors are created, changed,
stopped and deleted. What our worker answers differently is listed, with the reason.
"""

from typing import Final

from coordinator_sim.connect.plugins.file_stream import source_offset, source_partition
from coordinator_sim.connect.stores.offset_store import offset_key, offset_value
from coordinator_sim.kafka.resources import ConnectorTaskId
from tests.unit.connect.rest_bench import exchanges, request_of, shown
from tests.unit.connect.worker_bench import WorkerBench

SRC_0: Final = ConnectorTaskId("src", 0)
_DEFINITIONS: Final = "documentation, and settings newer than our baseline; see test_validation"
_JACKSON: Final = "Jackson's or the JVM's own words"
_LOG4J: Final = "levels that the recorded worker's log was configured with"
OTHER_BODIES: Final = {
    "name with slash": "a page with a footer; see test_rest",
    "plugin config source": _DEFINITIONS,
    "plugin config sink": _DEFINITIONS,
    "plugin config StringConverter": _DEFINITIONS,
    "validate ok": _DEFINITIONS,
    "validate bad": _DEFINITIONS,
    "validate sink": _DEFINITIONS,
    "validate converter": _DEFINITIONS,
    "validate good converter": _DEFINITIONS,
    "no body": _JACKSON,
    "bad json": _JACKSON,
    "body is list": _JACKSON,
    "unknown field": _JACKSON,
    "no config": _JACKSON,
    "bad initial state": _JACKSON,
    "internal bad json": _JACKSON,
    "sink bad regex": "Python's words for a pattern that does not compile",
    "logger root": _LOG4J,
    "loggers after": _LOG4J,
}
"""Exchanges of which only status and headers are compared."""
_BEFORE: Final = "before resources"
"""The one exchange before the session proper; `test_rest` has it."""


def do_the_tasks_work(bench: WorkerBench, name: str) -> None:
    """What the tasks of the recorded worker had done before an exchange."""
    if name in ("topics", "topics after reset"):
        bench.use(SRC_0, "t")
    if name == "topics":
        key = offset_key("src", source_partition("in.txt"))
        bench.write("connect-offsets", key, offset_value(source_offset(6)))
    bench.run(1_000)


def test_the_whole_session_is_answered_as_the_real_worker_did() -> None:
    """Status, headers and body of every exchange, in order."""
    bench = WorkerBench()
    bench.start()
    bench.run(1_000)
    different = []
    session = {name: each for name, each in exchanges().items() if name != _BEFORE}
    for name, exchange in session.items():
        do_the_tasks_work(bench, name)
        number = bench.send(request_of(exchange))
        bench.run(3_000)
        ours, theirs = shown(bench.answers[number]), exchange["response"]
        if name in OTHER_BODIES:
            ours, theirs = {**ours, "body": ""}, {**theirs, "body": ""}
        if ours != theirs:
            different.append(name)
    assert different == []


def test_what_is_excused_is_in_the_recording() -> None:
    """No excuse outlives its exchange."""
    recorded = exchanges()
    assert [name for name in OTHER_BODIES if name not in recorded] == []
