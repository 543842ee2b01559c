"""Lines that are read many at a time give what they give one by one."""

import json
from collections.abc import Iterator
from datetime import tzinfo
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.logtext.reading import block_reader
from coordinator_sim.logtext.reading.block_reader import BlockReader
from coordinator_sim.logtext.reading.broker_log import BrokerLog
from coordinator_sim.logtext.wordings.catalogue import CATALOGUE
from coordinator_sim.logtext.wordings.texts import Value, parse
from coordinator_sim.trace.batches import Names
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "samples" / "broker-logs"
INFO = RunInfo(trace_id="t", source=Source.BROKER_LOG, cluster_id="c", version="1", profile="p")
BERLIN = ZoneInfo("Europe/Berlin")
SCALA = "[GroupCoordinator 1]: ", "kafka.coordinator.group.GroupCoordinator"
JAVA = (
    "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] ",
    "org.apache.kafka.coordinator.group.GroupMetadataManager",
)
LEADS = [row.required[0].split(" ")[0] for row in CATALOGUE]
NAMES = st.one_of(
    st.sampled_from(
        ["shop", "till", "null", "None", "0", "a.", ".b", "Gruppe-\u00fc", "x)", "Set("]
    ),
    st.sampled_from(LEADS),
    st.from_regex(r"[A-Za-z0-9._-]{1,12}", fullmatch=True),
)
TEXTS = NAMES | st.sampled_from(
    ["not provided", "the consumer is being closed", "a (b) c", "Member x in group y has failed"]
)
NUMBERS = st.one_of(
    st.integers(0, 99).map(str), st.sampled_from(["007", "2147483648", "-1", "99999999999"])
)


@st.composite
def _messages(draw: st.DrawFn) -> str:
    """A message of the catalogue: all of its pieces, or some, with drawn values."""

    def written(nodes: tuple[object, ...]) -> str:
        out = ""
        for node in nodes:
            if isinstance(node, str):
                out += node
            elif isinstance(node, Value):
                out += value(node)
            elif draw(st.booleans()):
                out += written(node.nodes)  # type: ignore[attr-defined]
        return out

    def value(node: Value) -> str:
        if node.field.pattern == r"\d+":
            return draw(NUMBERS)
        if node.name == "reason":
            return draw(st.sampled_from(["Adding new member m-1", "removing member m-1 on h"]))
        if not node.field.has_value:
            return node.field.default
        return draw(TEXTS if node.field.takes_rest else NAMES)

    return written(parse(draw(st.sampled_from(CATALOGUE)).text))


@st.composite
def _lines(draw: st.DrawFn) -> str:
    """A line in the default layout, mostly; sometimes cut, wrapped, or of another program."""
    prefix, logger = draw(st.sampled_from([SCALA, JAVA]))
    second = draw(st.integers(0, 59))
    at = f"2024-10-27 0{draw(st.integers(1, 3))}:59:{second:02},{draw(st.integers(0, 9))}00"
    line = f"[{at}] INFO {prefix}{draw(_messages())} ({logger})"
    match draw(st.integers(0, 19)):
        case 0:
            place = draw(st.integers(0, len(line)))
            return f"{line[:place]}\n{line[place:]}"
        case 1:
            return line[: draw(st.integers(0, len(line)))]
        case 2:
            return f"{at} INFO {line[26:]}"
        case 3:
            return json.dumps({"message": line})
        case 4:
            return f"{line}\r"
        case 5:
            return "java.lang.IllegalStateException: no"
        case 6:
            return f"[{at}] INFO [UnifiedLog partition=a-1] Rolled new log (kafka.log.UnifiedLog)"
        case _:
            return line


def in_blocks(data: bytes, tz: tzinfo, cuts: list[int]) -> tuple[list[TraceEvent], BrokerLog]:
    """The events of a log that comes in blocks."""

    def blocks() -> Iterator[bytes]:
        start = 0
        for cut in [*sorted(cuts), len(data)]:
            end = data.find(b"\n", max(start, cut)) + 1 or len(data)
            if end > start:
                yield data[start:end]
            start = end

    log = BrokerLog("server.log", tz, keep_raw=True)
    batches = BlockReader(log, Names()).read(blocks())
    return [event for batch in batches for event in batch.events()], log


def one_by_one(data: bytes, tz: tzinfo) -> tuple[list[TraceEvent], BrokerLog]:
    """The events of a log, line by line."""
    log = BrokerLog("server.log", tz, keep_raw=True)
    return list(log.read(line.decode("utf-8", errors="replace") for line in BytesIO(data))), log


def check(data: bytes, tz: tzinfo, cuts: list[int]) -> None:
    """Both ways of reading give the same events and the same counts."""
    expected, alone = one_by_one(data, tz)
    told, together = in_blocks(data, tz, cuts)
    assert told == expected
    assert together.summary == alone.summary


def steps(size: int) -> list[int]:
    """Places at which a log is cut, often at first."""
    return list(range(200, size, 2_000))


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a log's first block be a few lines, so that the next ones are read by their forms."""
    monkeypatch.setattr(block_reader, "_FIRST_BYTES", 200)


def _sample_names() -> list[str]:
    return sorted(path.name for path in SAMPLES.glob("*.log"))


@pytest.mark.parametrize("name", _sample_names() or ["none"])
def test_samples_are_read_alike(name: str) -> None:
    """Real logs in all layouts, twice over, so that lines of their forms come again."""
    if not SAMPLES.is_dir():
        pytest.skip("no folder shared/samples/broker-logs beside the project")
    data = (SAMPLES / name).read_bytes()
    check(data + b"\n" + data, BERLIN, steps(2 * len(data)))


@given(st.lists(_lines(), min_size=1, max_size=12), st.integers(2, 4), st.data())
def test_drawn_lines_are_read_alike(lines: list[str], times: int, data: st.DataObject) -> None:
    """Drawn lines of all rows, in any order, several times each with other lines between them."""
    several = data.draw(st.permutations(lines * times))
    log = "\n".join(several).encode("utf-8", errors="replace")
    check(log, BERLIN, steps(len(log)))
