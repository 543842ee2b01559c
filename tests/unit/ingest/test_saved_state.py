"""What an import puts aside is data: whatever a file holds, nothing of it is run."""

import pickle
from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from coordinator_sim import __version__
from coordinator_sim.errors import DataError
from coordinator_sim.ingest.importing import Options, prepare
from coordinator_sim.ingest.saved_state import decoded, encoded, load
from coordinator_sim.ingest.skew import Skews
from coordinator_sim.ingest.writing import Imported, write_trace
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.schema import APPENDABLE_NAME
from coordinator_sim_scenarios.catalog import scenario_named
from tests.unit.ingest.runs_as_sources import leave_behind

SKEWS = "coordinator_sim.ingest.skew.Skews"
EVENT = "coordinator_sim.trace.events.Event"
TRACE_EVENT = "coordinator_sim.trace.events.TraceEvent"
TUPLE, LIST, DICT, ENUM, STRUCT, OBJECT, AGAIN, ARRAY = 0, 1, 2, 7, 8, 9, 10, 11
"""Tags of the format."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What an import of a log, segments and requests puts aside."""
    folder = tmp_path_factory.mktemp("saved")
    left = leave_behind(scenario_named("rolling-bounce"), folder / "run")
    paths = [left.broker_log, left.log_dir]
    write_trace(prepare(paths), Options(zone=UTC), folder / "trace", lambda _used: None)
    return (folder / "trace" / APPENDABLE_NAME).read_bytes()


def forged(*names: str, root: Any) -> bytes:  # noqa: ANN401 - any data
    """A value of the format."""
    return msgspec.msgpack.encode((names, root))


@pytest.mark.parametrize(
    "value",
    [
        (1, "a", b"b", None, True, 1.5, (), Path("a")),
        {("a", 1): [deque([1, 2]), {3}, frozenset({"x"})], Event.HEARTBEAT: range(1, 5)},
        [Source.BROKER_LOG, ErrorCode.NONE, Counter({"a": 2})],
        TraceEvent(event=Event.HEARTBEAT, ts_us=5, seq=1, attrs={"a": "b"}),
    ],
)
def test_values_come_back_as_they_were(value: object) -> None:
    """Of the same types, numbers and texts."""
    again = decoded(encoded(value), "f")
    assert again == value
    assert type(again) is type(value)


def test_what_two_refer_to_is_one_object_again() -> None:
    """Two members of a state share a third, and an array is written once."""
    shared, numbers = Skews(), np.arange(3)
    one, other, first, second = decoded(encoded([shared, shared, numbers, numbers]), "f")
    assert one is other
    assert first is second
    assert first.tolist() == [0, 1, 2]


class Evil:
    """Runs a program where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self._path,)


def test_a_pickle_is_not_read(tmp_path: Path) -> None:
    """Neither behind the mark of an earlier release, nor behind that of this one."""
    ran = tmp_path / "ran"
    payload = pickle.dumps(Evil(ran))
    for mark in (b"coordinator-sim appendable ", b"coordinator-sim import state "):
        with pytest.raises(DataError, match="is damaged"):
            load(mark + __version__.encode() + b"\n" + payload, "f")
    assert not ran.exists()


@pytest.mark.parametrize(
    ("names", "root"),
    [
        (("builtins.eval",), [OBJECT, 0, [DICT]]),
        (("os.system",), [OBJECT, 0, [DICT]]),
        (("coordinator_sim.ingest.writing.write_trace",), [OBJECT, 0, [DICT]]),
        (("coordinator_sim.ingest.writing.Path",), [OBJECT, 0, [DICT]]),
        ((f"{SKEWS}.note.__globals__",), [OBJECT, 0, [DICT]]),
        ((SKEWS,), [OBJECT, 0, [DICT]]),
        ((SKEWS,), [OBJECT, 0, [DICT, "_times", 1]]),
        ((SKEWS,), [OBJECT, 0, [DICT, "_times", [DICT, "a", [DICT]]]]),
        ((SKEWS,), [OBJECT, 0, [DICT, "_times", [DICT], "note", 1]]),
        ((SKEWS,), [OBJECT, 0, [DICT, "__class__", 1]]),
        ((SKEWS,), [OBJECT, 0, 1]),
        ((SKEWS,), [OBJECT, -1, [DICT, "_times", [DICT]]]),
        ((SKEWS,), [STRUCT, 0]),
        ((TRACE_EVENT,), [STRUCT, 0, 1]),
        ((TRACE_EVENT,), [OBJECT, 0, [DICT]]),
        ((EVENT,), [ENUM, 0, "NO_SUCH_EVENT"]),
        ((EVENT,), [OBJECT, 0, [DICT]]),
        ((), [AGAIN, 0]),
        ((), [99]),
        ((), []),
        ((), [DICT, 1]),
        ((), [DICT, [LIST], 1]),
        ((), [ARRAY, "O", b"12345678"]),
        ((), [ARRAY, "<i8", b"1234567"]),
        ((), {"a": 1}),
    ],
)
def test_forged_data_is_one_line(names: tuple[str, ...], root: object) -> None:
    """Names of functions and of other modules, other types, numbers out of range."""
    with pytest.raises(DataError, match="f is damaged") as refused:
        decoded(forged(*names, root=[TUPLE, root]), "f")
    assert "\n" not in str(refused.value)


def test_deep_data_is_one_line() -> None:
    """Lists in lists, deeper than the stack."""
    with pytest.raises(DataError, match="f is damaged"):
        decoded(b"\x92\x90" + b"\x92\x00" * 100_000 + b"\xc0", "f")


def test_spoilt_bytes_are_a_state_or_one_line(saved: bytes) -> None:
    """Bits that are flipped and parts that are missing raise nothing else."""
    random = Random(1)  # noqa: S311 - spoilt bytes
    refused = 0
    for _ in range(30):
        data = bytearray(saved)
        for _ in range(random.choice((1, 3, 20))):
            data[random.randrange(40, len(data))] ^= 1 << random.randrange(8)
        try:
            load(bytes(data), "f")
        except DataError:
            refused += 1
    assert refused > 5
    assert isinstance(load(saved, "f"), Imported)
