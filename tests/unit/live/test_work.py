"""The parts of a live worker's work that need no broker."""

import asyncio
import os
from collections import deque
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Producer

from coordinator_sim.connect.plugins.manifests import WorkSpec
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.live import source_tasks
from coordinator_sim.live.source_offsets import SourceOffsets
from coordinator_sim.live.source_tasks import FileSource, SourceTask, SteadySource, TellingSource
from coordinator_sim.live.work import FileSink, overrides, sink_topics

TASK = ConnectorTaskId("c", 0)


class Offsets:
    """Offsets as committed before."""

    def __init__(self, offset: dict[str, object] | None) -> None:
        self.offset = offset

    async def offset_of(self, _connector: str, _partition: object) -> dict[str, object] | None:
        """The one there is."""
        return self.offset


def opened(
    source: FileSource | SteadySource | TellingSource, offset: dict[str, object] | None
) -> None:
    """Let a source find its offset."""
    asyncio.run(source.open(cast("SourceOffsets", cast("Any", Offsets(offset))), TASK))


def test_a_file_source_waits_for_its_file_then_reads_whole_lines(tmp_path: Path) -> None:
    """A line without an end is left for later; every record says how far it is."""
    file = tmp_path / "in.txt"
    source = FileSource({"file": str(file), "topic": "lines"})
    opened(source, None)

    assert source.poll() == ((), 1.0)
    file.write_bytes(b"one\ntwo\nthr")
    records, waits_s = source.poll()
    assert [(each.text, each.offset) for each in records] == [
        ("one", {"position": 4}),
        ("two", {"position": 8}),
    ]
    assert waits_s == 0
    assert records[0].partition == {"filename": str(file)}
    assert source.poll() == ((), 1.0)
    with file.open("ab") as more:
        more.write(b"ee\n")
    assert [each.text for each in source.poll()[0]] == ["three"]
    source.close()


def test_a_file_source_goes_on_where_the_offset_says(tmp_path: Path) -> None:
    """What was committed, by whichever worker, is not read again."""
    file = tmp_path / "in.txt"
    file.write_bytes(b"one\ntwo\n")
    source = FileSource({"file": str(file), "topic": "lines"})
    opened(source, {"position": 4})

    assert [each.offset for each in source.poll()[0]] == [{"position": 8}]
    source.close()


def test_a_file_source_without_a_file_reads_nothing() -> None:
    """A file source without a file, which in Kafka reads stdin, produces no records."""
    source = FileSource({"topic": "lines"})
    opened(source, None)

    assert source.poll() == ((), 1.0)


def test_a_file_source_fails_where_its_file_cannot_be_opened(tmp_path: Path) -> None:
    """Only a file that does not exist is waited for; nothing is read from a directory."""
    file = tmp_path / "in.txt"
    file.touch()
    source = FileSource({"file": str(file / "below"), "topic": "lines"})
    opened(source, None)
    with pytest.raises(DataError, match=r"FileSystemException: .*in.txt/below: Not a directory"):
        source.poll()

    folder = FileSource({"file": str(tmp_path), "topic": "lines"})
    opened(folder, None)
    assert folder.poll() == ((), 1.0)


def test_a_file_source_that_cannot_read_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a failed task: a name with a zero byte, a failing device, a line without an end."""
    monkeypatch.setattr(source_tasks, "LONGEST_LINE", 1 << 17)
    endless = tmp_path / "endless"
    endless.write_bytes(b"\0" * (1 << 19))
    for file, why in (
        ("a\0b", "embedded null byte"),
        ("/proc/self/mem", "Input/output error"),
        (str(endless), "a line beyond 131072 chars"),
    ):
        source = FileSource({"file": file, "topic": "lines"})
        opened(source, None)
        with pytest.raises(DataError, match=why):
            deque((source.poll() for _ in range(8)), maxlen=0)
        source.close()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A source reads what comes; a sink without a reader fails. The worker goes on."""
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="No such device or address"):
        FileSink({"file": pipe}, lambda _value: "one")
    source = FileSource({"file": pipe, "topic": "lines"})
    opened(source, None)
    assert source.poll() == ((), 1.0)
    sink = FileSink({"file": pipe}, lambda _value: "one")
    sink.put([b""])
    assert [each.text for each in source.poll()[0]] == ["one"]
    sink.close()
    source.close()


def test_a_source_without_pauses_lets_others_go_on(tmp_path: Path) -> None:
    """A poll of less than a line has no record, and no pause."""
    file = tmp_path / "long"
    file.write_bytes(b"x" * (1 << 21))
    source = FileSource({"file": str(file), "topic": "lines"})
    task = SourceTask(
        TASK,
        source,
        cast("SourceOffsets", cast("Any", Offsets(None))),
        to_bytes=str.encode,
        producer=cast("Producer", None),
        is_transactional=False,
        flush_interval_s=60,
    )

    async def story() -> int:
        running = asyncio.create_task(task.run())
        turns = 0
        while source.poll()[1] == 0:
            await asyncio.sleep(0)
            turns += 1
        task.stop()
        await running
        return turns

    assert asyncio.run(story()) > 8


def test_a_source_tells_of_its_topic_once(tmp_path: Path) -> None:
    """When there is a first record, not before."""
    file = tmp_path / "in.txt"
    told: list[str] = []
    source = TellingSource(FileSource({"file": str(file), "topic": "lines"}), told.append)
    opened(source, None)

    source.poll()
    assert told == []
    for _ in range(2):
        with file.open("ab") as more:
            more.write(b"one\n")
        assert source.poll()[0][0].topic == "lines"
    assert told == ["lines"]
    source.close()


def test_a_manifests_source_keeps_its_rate_and_its_number() -> None:
    """Five records a second are one every second poll; they are numbered on from the offset."""
    source = SteadySource({}, TASK, WorkSpec(records_per_s=5, record_bytes=4, start_ms=300))
    opened(source, {"number": 41})

    assert source.poll() == ((), 0.3)
    polled = [source.poll()[0] for _ in range(4)]

    assert [[each.text for each in records] for records in polled] == [[], ["42.."], [], ["43.."]]
    assert polled[1][0].topic == "c"
    assert polled[1][0].offset == {"number": 42}


def test_a_file_sink_appends_a_line_for_every_value(tmp_path: Path) -> None:
    """A null is written as Java prints it."""
    file = tmp_path / "out.txt"
    for _ in range(2):
        sink = FileSink(
            {"file": str(file)}, lambda value: None if value is None else value.decode()
        )
        sink.put([b"one", None])
        assert file.read_text().endswith("one\nnull\n")
        sink.close()

    assert file.read_text() == "one\nnull\n" * 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_file_sink_fails_where_its_name_cannot_be() -> None:
    """A zero byte is in no name."""
    with pytest.raises(DataError, match="embedded null byte"):
        FileSink({"file": "a\0b"}, lambda _value: None)


def test_a_file_sink_fails_when_the_disk_is_full() -> None:
    """The task must not go on and commit what was not written."""
    sink = FileSink({"file": "/dev/full"}, lambda _value: "line")

    with pytest.raises(DataError, match="/dev/full: No space left"):
        sink.put([b"one"])
    sink.close()


def test_a_sink_subscribes_to_names_or_to_a_pattern() -> None:
    """A pattern is anchored, as Java matches whole names."""
    assert sink_topics({"topics": "a, b"}) == ["a", "b"]
    assert sink_topics({"topics.regex": "a.*"}) == ["^a.*$"]


def test_overrides_are_a_connectors_own() -> None:
    """Only settings under the prefix are passed on, without it."""
    config = {"consumer.override.a.b": "1", "topics": "x"}

    assert overrides(config, "consumer.override.") == {"a.b": "1"}
