"""Lines that are read many at a time, or in ranges, give what they give one by one."""

import json
from collections.abc import Iterator
from datetime import tzinfo
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.ingest.files import LogFileReader
from coordinator_sim.ingest.ranges import RangeReading, content_of, events_of, ranges_of, read_range
from coordinator_sim.logtext.reading import block_reader
from coordinator_sim.logtext.reading.block_reader import BlockReader
from coordinator_sim.logtext.reading.broker_log import BrokerLog
from coordinator_sim.logtext.reading.repeats import LogContents
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
        case 6 | 7:
            rolled = f"[{at}] INFO [UnifiedLog partition=a-1] Rolled new log (kafka.log.UnifiedLog)"
            begun = f"[{at}] INFO ConsumerConfig values: "
            settings = ["\tclient.id = a", "\tgroup.id = shop", " (a.BConfig)"]
            return draw(st.sampled_from([rolled, begun, *settings]))
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


CLIENT = "[Consumer clientId=c-{client}, groupId=shop] "
CLIENT_TEXTS = (
    (
        "Successfully joined group with generation Generation{{generationId={number}, "
        "memberId='c-{client}-x', protocol='range'}}"
    ),
    "(Re-)joining group",
    "Request joining group due to: group is already rebalancing",
    "Attempt to heartbeat failed since group is rebalancing",
    "Resetting generation and member id due to: encountered UNKNOWN_MEMBER_ID",
)


@st.composite
def _client_lines(draw: st.DrawFn) -> str:
    """A line of one of two consumers, whose member ids are logged once and used later."""
    text = CLIENT + draw(st.sampled_from(CLIENT_TEXTS))
    text = text.format(client=draw(st.integers(1, 2)), number=draw(st.integers(1, 9)))
    at = f"2024-10-27 01:{draw(st.integers(0, 59)):02}:01,250"
    logger = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
    return f"[{at}] INFO {text} ({logger})"


def check_ranges(path: Path, range_bytes: int, above_bytes: int) -> RangeReading:
    """A log in ranges gives the events and counts of one reading, whatever is guessed of them."""
    kept: dict[int, bytes] = {}
    parts = ranges_of(path, "server.log", range_bytes, keep_raw=True, above_bytes=above_bytes)
    reading = RangeReading(
        [parts],
        BERLIN,
        lambda tasks: [read_range(task, BERLIN) for task in tasks],
        kept.__setitem__,
    )

    (log,) = reading.read()

    names = Names()
    told = [
        event
        for number, above in log.parts
        for batch in events_of(kept[number], names, above)
        for event in batch.events()
    ]
    # Lines that were drawn in any order may be a file with the newest line first.
    in_order = b"".join(LogFileReader(path, lambda _used: None).blocks())
    expected, alone = in_blocks(in_order, BERLIN, [])
    assert told == expected
    assert log.summary == alone.summary
    assert log.first_us == (expected[0].ts_us if expected else 0)
    assert reading.read_count <= 3 * len(parts)
    return reading


@pytest.mark.parametrize("name", _sample_names() or ["none"])
def test_samples_are_read_alike_in_ranges(name: str, tmp_path: Path) -> None:
    """Real logs in all layouts, cut wherever it hurts, with little text above each range."""
    if not SAMPLES.is_dir():
        pytest.skip("no folder shared/samples/broker-logs beside the project")
    path = tmp_path / "server.log"
    path.write_bytes((SAMPLES / name).read_bytes())
    check_ranges(path, max(97, path.stat().st_size // 40), 40)
    check_ranges(path, max(97, path.stat().st_size // 3), 2_000)


@given(
    st.lists(_lines() | _client_lines(), min_size=1, max_size=20),
    st.integers(1, 3),
    st.integers(20, 900),
    st.data(),
)
def test_drawn_lines_are_read_alike_in_ranges(
    lines: list[str], times: int, range_bytes: int, data: st.DataObject
) -> None:
    """Drawn lines, wrapped ones and exceptions among them, with borders anywhere between lines."""
    several = data.draw(st.permutations(lines * times))
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "server.log"
        path.write_bytes("\n".join(several).encode("utf-8", errors="replace"))
        check_ranges(path, range_bytes, data.draw(st.sampled_from([0, 50, 100_000])))


def test_a_range_that_was_guessed_wrong_is_read_again(tmp_path: Path) -> None:
    """A member id that was logged far above a range, which no text near it tells."""
    path = tmp_path / "server.log"
    text = CLIENT + "Attempt to heartbeat failed since group is rebalancing"
    logger = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
    lines = [
        f"[2024-05-06 12:{n // 60:02}:{n % 60:02},250] INFO {text.format(client=n % 3)} ({logger})"
        for n in range(300)
    ]
    joined = (CLIENT + CLIENT_TEXTS[0]).format(client=2, number=7)
    lines.insert(100, f"[2024-05-06 12:01:40,250] INFO {joined} ({logger})")
    path.write_text("\n".join(lines))

    reading = check_ranges(path, 2_000, 100)

    assert len(reading.logs[0]) < reading.read_count <= 2 * len(reading.logs[0])


@given(st.lists(_lines() | _client_lines(), min_size=1, max_size=20), st.integers(20, 900))
def test_contents_of_ranges_are_those_of_the_whole(lines: list[str], range_bytes: int) -> None:
    """Copies and excerpts are known by the same blocks, wherever a log is cut."""
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "server.log"
        path.write_bytes("\n".join(lines).encode("utf-8", errors="replace"))
        alone, together = LogContents(), LogContents()
        for name, some in (("whole", lines), ("excerpt", lines[2:]), ("copy", lines)):
            path.write_bytes("\n".join(some).encode("utf-8", errors="replace"))
            alone.add(name, LogFileReader(path, lambda _used: None).lines())
            together.add_parts(name, map(content_of, ranges_of(path, name, range_bytes)))

    assert vars(together) == vars(alone)
