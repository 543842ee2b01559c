"""The offsets topic and requests as text: kafka-dump-log, console formatters, old request logs.

The lines are look-alikes of what each release prints.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.ingest.imports import Import
from coordinator_sim.ingest.kinds import Kind, kind_of
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.dump_text import dump_segment
from coordinator_sim.logtext.reading.dump_lines import DumpText
from coordinator_sim.logtext.reading.formatter_lines import read_formatter_json
from coordinator_sim.logtext.reading.request_text import read_request_text
from coordinator_sim.logtext.reading.stored_text import dumped_record
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.messages import streams_group_records
from coordinator_sim.messages.embedded.connect_protocol import encode_connect_assignment
from coordinator_sim.messages.embedded.contents import ConnectAssignment
from coordinator_sim.messages.share_group_records import ShareGroupMetadataValue
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.trace.events import Event, TimeKind, TraceEvent
from coordinator_sim_scenarios.catalog import scenario_named
from tests.unit.ingest.runs_as_sources import generations_in, leave_behind, read_again

NEW_COMMIT = (
    "baseOffset: 4 lastOffset: 4 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 "
    "producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: false "
    "position: 0 CreateTime: 1700000000123 size: 120 magic: 2 compresscodec: none crc: 1 "
    "isvalid: true\n"
    "| offset: 4 CreateTime: 1700000000123 keySize: 20 valueSize: 24 sequence: -1 headerKeys: [] "
)
OLD_COMMIT = (
    "offset: 4 position: 0 CreateTime: 1700000000123 isvalid: true keysize: 20 valuesize: 24 "
    "magic: 2 compresscodec: NONE producerId: -1 producerEpoch: -1 sequence: -1 "
    "isTransactional: false headerKeys: [] "
)


def read(folder: Path, text: str, kind: Kind) -> tuple[Import, list[TraceEvent]]:
    """The file with its counts, and its events."""
    path = folder / "dump.txt"
    path.write_text(text)
    (one,) = read_again(folder / "t", path).files
    assert one.kind is kind
    return one, list(read_run(folder / "t").events())


# -- kafka-dump-log ----------------------------------------------------------------------------


def test_dump_tells_what_its_segment_tells(tmp_path: Path) -> None:
    """Our own dump in the form of 3.8 and later, read back."""
    left = leave_behind(scenario_named("late-heartbeat-answer"), tmp_path)
    (segment,) = left.log_dir.rglob("*.log")
    (tmp_path / "dump.txt").write_text(
        "".join(f"{line}\n" for line in dump_segment(str(segment), segment.read_bytes()))
    )
    read_again(tmp_path / "a", segment)
    read_again(tmp_path / "b", tmp_path / "dump.txt")
    assert generations_in(tmp_path / "a") == generations_in(tmp_path / "b")
    one, two = (
        [(e.event, e.ts_us, e.seq, e.offsets_partition, e.offsets, e.subscription) for e in events]
        for events in (list(read_run(tmp_path / name).events()) for name in ("a", "b"))
    )
    assert one == two


@pytest.mark.parametrize(
    "line",
    [
        NEW_COMMIT + 'key: {"type":"1","data":{"group":"g","topic":"t-1","partition":3}} '
        'payload: {"version":"3","data":{"offset":42,"leaderEpoch":0,"metadata":"m",'
        '"commitTimestamp":1700000000100}}\n',
        NEW_COMMIT + "key: offset_commit::group=g,partition=t-1-3 payload: offset=42,metadata=m\n",
        OLD_COMMIT + "key: offset::g:t-1:3 payload: 42:m\n",
        OLD_COMMIT.replace("valuesize", "payloadsize") + "key: offset::g:t-1:3 payload: 42:m\n",
    ],
)
def test_commit_is_read_in_the_form_of_every_release(tmp_path: Path, line: str) -> None:
    """3.8 and later, 2.4 to 3.7, 1.0 to 2.3, 0.10.2."""
    text = f"Dumping /l/__consumer_offsets-7/0.log\nStarting offset: 0\n{line}"
    one, (event,) = read(tmp_path, text, Kind.DUMP)
    assert one.summary.unparsed == 0
    (entry,) = event.offsets
    assert (event.event, event.group_id, event.seq, event.offsets_partition) == (
        *(Event.OFFSET_COMMIT, "g", 4, 7),
    )
    assert (entry.topic, entry.partition, entry.offset, entry.metadata) == ("t-1", 3, 42, "m")
    assert entry.commit_ts_us == (1_700_000_000_100_000 if "commitTimestamp" in line else None)
    assert event.ts_us == 1_700_000_000_123_000


@pytest.mark.parametrize(
    "text",
    [
        NEW_COMMIT + 'key: group_metadata::group=g payload: {"protocolType":"consumer",'
        '"protocol":"range","generationId":5,"assignment":"{a-1=[t-0, t-1],b-2=[]}"}\n',
        OLD_COMMIT + 'key: {"metadata":"g"} payload: {"protocolType":"consumer",'
        '"protocol":"range","generationId":5,"assignment":"{a-1=[t-0, t-1],b-2=[]}"}\n',
        OLD_COMMIT + "key: metadata::g payload: consumer:range:5:{a-1=[t-0, t-1],b-2=[]}\n",
    ],
)
def test_group_is_read_in_the_form_of_every_release(tmp_path: Path, text: str) -> None:
    """Assignments are printed as text; the end of the join phase is not told."""
    one, events = read(tmp_path, text, Kind.DUMP)
    assert one.summary.unparsed == 0
    joined = next(event for event in events if event.event is Event.JOIN_COMPLETE)
    assert (joined.generation, joined.members, joined.ts_kind) == (5, 2, TimeKind.INFERRED)
    told = generations_in(tmp_path / "t")["g", 0, 5]
    assert told.owners == (("p:t-0", "a-1"), ("p:t-1", "a-1"))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_connect_assignment_in_hex_gets_its_zeros_back(version: int) -> None:
    """The tool prints a number: the zeros in front of version and error are not there."""
    given = encode_connect_assignment(
        ConnectAssignment(
            version=version, leader="w1", leader_url="http://w1", config_offset=5, connectors=("c",)
        )
    )
    digits = f"{int.from_bytes(given, 'big'):X}"
    payload = f"connect:sessioned:2:{{w1={digits}}}"
    record = dumped_record("metadata::g", payload)
    assert record is not None
    assert record.value is not None
    assert record.value.members[0].assignment == given  # type: ignore[union-attr]


def test_dump_of_a_damaged_segment_is_told(tmp_path: Path) -> None:
    """Records of batches with a wrong CRC are left out, cut lines counted, tails told."""
    record = "key: offset_commit::group=g,partition=t-0 payload: offset=1\n"
    text = (
        NEW_COMMIT.replace("isvalid: true", "isvalid: false")
        + record
        + NEW_COMMIT
        + record
        + "| offset: 5 CreateTime: 1700000000123 keySize: 20 key: offset_comm\n"
        + "Found 99 invalid bytes at the end of 0.log\n"
    )
    one, events = read(tmp_path, text, Kind.DUMP)
    assert [event.offsets[0].offset for event in events] == [1]
    assert one.summary.unparsed == 2
    assert one.notes == [
        "1 records of batches with a wrong CRC left out.",
        "the tool could not read 99 bytes at the end of segments.",
    ]


def test_dump_without_the_decoder_says_so() -> None:
    """Without --offsets-decoder there is nothing to read."""
    summary = IngestSummary()
    assert list(filter(None, DumpText(summary).read(NEW_COMMIT.splitlines()))) == []
    assert "use kafka-dump-log with --offsets-decoder" in next(iter(summary.unparsed_patterns))


# -- console formatters ------------------------------------------------------------------------


def test_formatter_text_is_recognised_behind_a_note() -> None:
    """What was copied from a terminal begins with a command; a log may quote a record."""
    record = b"[g,t,0]::OffsetAndMetadata(offset=6, leaderEpoch=Optional[2], metadata=)\n"
    note = b"$ kafka-console-consumer --topic __consumer_offsets\n...\n"
    line = b"[2024-01-01 00:00:00,000] INFO [GroupCoordinator 1]: Stabilized group g (k)\n"
    assert kind_of(note + record, "notes.txt") is Kind.FORMATTER_TEXT
    assert kind_of(line + record, "server.log") is Kind.LOG


def test_formatter_text_is_read(tmp_path: Path) -> None:
    """Both forms of offsets, a group without assignments, tombstones; metadata may be anything."""
    text = (
        "[g,t,0]::[OffsetMetadata[5,NO_METADATA],CommitTime 1700000000000,ExpirationTime 9]\n"
        "[g,x,t,1]::OffsetAndMetadata(offset=6, leaderEpoch=Optional[2], metadata=a, "
        "commitTimestamp=1,\nb, commitTimestamp=1700000000001, expireTimestamp=None)\n"
        "g::GroupMetadata(groupId=g, generation=3, protocolType=Some(consumer), "
        "currentState=Stable, members=Map(c-1 -> MemberMetadata(memberId=c-1, "
        "groupInstanceId=Some(null), clientId=c, clientHost=/10.0.0.1, sessionTimeoutMs=10000, "
        "rebalanceTimeoutMs=60000, supportedProtocols=List(range), )))\n"
        "[g,t,0]::NULL\ng::NULL\n"
    )
    one, events = read(tmp_path, text, Kind.FORMATTER_TEXT)
    assert one.summary.unparsed == 0
    commits = [e for e in events if e.event is Event.OFFSET_COMMIT]
    assert [e.group_id for e in commits] == ["g", "g,x"]
    assert commits[1].offsets[0].leader_epoch == 2
    assert commits[1].offsets[0].metadata == "a, commitTimestamp=1,\nb"
    assigned = next(e for e in events if e.event is Event.ASSIGNED)
    assert (assigned.client_host, assigned.assignment, assigned.session_timeout_ms) == (
        *("/10.0.0.1", None, 10_000),
    )
    assert [e.event for e in events][-2:] == [Event.OFFSET_TOMBSTONE, Event.GROUP_DEAD]


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=30), name=st.text(max_size=5))
@settings(max_examples=50, deadline=None)
def test_formatter_json_needs_no_line_breaks(sizes: list[int], name: str) -> None:
    """The tool of 3.9 writes object after object: any cut into pieces gives the same records."""
    nodes = [
        {
            "key": {kind: 1, "data": {"group": f'g"{{{name}', "topic": "t", "partition": index}},
            "value": {
                "version": 3,
                "data": {
                    "offset": index,
                    "leaderEpoch": -1,
                    "metadata": 'a}"\\',
                    "commitTimestamp": 1_700_000_000_000,
                },
            },
        }
        for index, kind in enumerate(["version", "type"])
    ]
    text = "".join(json.dumps(node, ensure_ascii=False) for node in nodes)
    pieces, at = [], 0
    for size in [*sizes, len(text)]:
        pieces.append(text[at : at + size])
        at += size
    summary = IngestSummary()
    found = list(read_formatter_json(pieces, summary))
    assert [each.record.key.partition for each in found] == [0, 1]  # type: ignore[union-attr]
    assert {each.record.key.group for each in found} == {f'g"{{{name}'}  # type: ignore[union-attr]
    assert summary.unparsed == 0


def test_formatter_json_has_records_of_streams_and_share_groups() -> None:
    """The fields are those of Kafka's schemas; what a tool leaves out has its default."""
    tasks = [{"subtopologyId": "0", "partitions": [0, 1], "assignmentEpochs": [2, 3]}]
    step: dict[str, object] = {"memberEpoch": 3, "previousMemberEpoch": 2, "state": 1}
    step["activeTasks"] = tasks
    nodes = [
        {
            "key": {"type": 22, "data": {"groupId": "app", "memberId": "m"}},
            "value": {"version": 0, "data": step},
        },
        {
            "key": {"type": 11, "data": {"groupId": "queue"}},
            "value": {"version": 0, "data": {"epoch": 4, "metadataHash": 7}},
        },
    ]
    summary = IngestSummary()
    read = list(read_formatter_json(["".join(map(json.dumps, nodes))], summary))
    stepped, bumped = (each.record for each in read)
    assert isinstance(stepped.value, streams_group_records.StreamsGroupCurrentMemberAssignmentValue)
    assert stepped.value.active_tasks == (streams_group_records.TaskIds("0", (0, 1), (2, 3)),)
    assert bumped.value == ShareGroupMetadataValue(4, 7)


def test_formatter_json_that_is_cut_is_counted(tmp_path: Path) -> None:
    """What nobody can read is counted, and what can be read is read."""
    whole = '{"key":{"type":2,"data":{"group":"g"}},"value":null}'
    text = whole + '{"key":{"type":1,"data":"unknown"},"value":null}' + whole[:-9]
    one, events = read(tmp_path, text, Kind.FORMATTER_JSON)
    assert [event.event for event in events] == [Event.GROUP_DEAD]
    assert (one.summary.known, one.summary.unparsed_patterns) == (1, {"JSON that is cut": 1})


# -- request logs up to 2.7 ----------------------------------------------------------------------

BYTES = "java.nio.HeapByteBuffer[pos=0 lim=41 cap=41]"
TAIL = (
    "from connection 10.0.0.1:9092-10.0.0.7:51122-3;totalTime:3021.334,requestQueueTime:0.09,"
    "localTime:1.2,remoteTime:3019.8,throttleTime:0.2,responseQueueTime:0.04,sendTime:0.1,"
    "securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,listener:PLAINTEXT (kafka.request.logger)"
)


def old_line(api: str, version: int, request: str, response: str) -> str:
    """A line of 1.0 to 2.7."""
    return (
        f"[2021-03-01 10:00:03,412] DEBUG Completed request:RequestHeader(apiKey={api}, "
        f"apiVersion={version}, clientId=c1, correlationId=7) -- {request},"
        f"response:{response} {TAIL}\n"
    )


@pytest.mark.parametrize(
    ("version", "request_text", "response_text"),
    [
        (
            2,
            (
                "{group_id=g,session_timeout=10000,rebalance_timeout=60000,member_id=,"
                f"protocol_type=consumer,group_protocols=[{{protocol_name=range,protocol_metadata={BYTES}"
                "}]}"
            ),
            (
                "{throttle_time_ms=0,error_code=0,generation_id=3,group_protocol=range,leader_id=m-1,"
                f"member_id=m-1,members=[{{member_id=m-1,member_metadata={BYTES}}}]}}"
            ),
        ),
        (
            6,
            (
                "{group_id=g,session_timeout_ms=10000,rebalance_timeout_ms=60000,member_id=m-1,"
                "group_instance_id=null,protocol_type=consumer,"
                f"protocols=[{{name=range,metadata={BYTES},_tagged_fields={{}}}}],_tagged_fields={{}}}}"
            ),
            (
                "{throttle_time_ms=0,error_code=0,generation_id=3,protocol_name=range,leader=m-1,"
                f"member_id=m-1,members=[{{member_id=m-1,group_instance_id=null,metadata={BYTES},"
                "_tagged_fields={}}],_tagged_fields={}}"
            ),
        ),
    ],
)
def test_join_of_an_old_release_is_read(
    tmp_path: Path, version: int, request_text: str, response_text: str
) -> None:
    """The names up to 2.2 and since; times of arrival and answer; bytes are lost, not empty."""
    text = old_line("JOIN_GROUP", version, request_text, response_text)
    one, events = read(tmp_path, text, Kind.REQUEST_LOG)
    assert one.summary.unparsed_patterns == {}
    asked, answered = (
        next(event for event in events if event.event is kind)
        for kind in (Event.JOIN_REQ, Event.JOIN_RESP)
    )
    assert (asked.session_timeout_ms, asked.rebalance_timeout_ms) == (10_000, 60_000)
    assert (asked.subscription, asked.attrs["protocols"]) == (None, "range")
    assert (asked.client_host, asked.client_id) == ("/10.0.0.7", "c1")
    assert answered.ts_us - asked.ts_us == answered.latency_us == 3_021_334
    assert (answered.generation, answered.leader_id, answered.error_code) == (
        *(3, "m-1", ErrorCode.NONE),
    )
    joined = next(event for event in events if event.event is Event.JOIN_COMPLETE)
    assert answered.ts_us - joined.ts_us == 140


def test_commit_of_an_old_release_is_read(tmp_path: Path) -> None:
    """Offsets of 2.2 and of 2.4, and an error."""
    old = old_line(
        "OFFSET_COMMIT",
        3,
        "{group_id=g,generation_id=3,member_id=m-1,retention_time=-1,topics=[{topic=t,partitions=["
        "{partition=0,offset=42,metadata=},{partition=1,offset=43,metadata=x, y}]}]}",
        "{throttle_time_ms=0,responses=[{topic=t,partition_responses=[{partition=0,error_code=0},"
        "{partition=1,error_code=27}]}]}",
    )
    one, (event,) = read(tmp_path, old, Kind.REQUEST_LOG)
    assert one.summary.unparsed_patterns == {}
    assert [(each.partition, each.offset, each.metadata) for each in event.offsets] == [
        *((0, 42, None), (1, 43, "x, y"))
    ]
    assert event.error_code is ErrorCode.REBALANCE_IN_PROGRESS


def test_oldest_form_has_no_answer() -> None:
    """Up to 0.10.2 the header is a structure, and the answer is not logged."""
    told = read_request_text(
        "{api_key=11,api_version=1,correlation_id=7,client_id=c1} -- {group_id=g,"
        "session_timeout=10000,rebalance_timeout=60000,member_id=,protocol_type=consumer,"
        "group_protocols=[]} from connection 10.0.0.1:9092-10.0.0.7:51122;totalTime:12,"
        "requestQueueTime:0,localTime:11,remoteTime:0,responseQueueTime:0,sendTime:1,"
        "securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,listener:PLAINTEXT"
    )
    assert (told.api_key, told.correlation_id, told.response) == (11, 7, None)
    assert told.request["sessionTimeoutMs"] == 10_000
    assert told.times_ms["totalTime"] == 12


def test_broken_lines_of_requests_are_counted(tmp_path: Path) -> None:
    """Cut JSON, a line without a body, another API: nothing is lost unseen."""
    line = "[2026-03-01 10:00:03,412] DEBUG Completed request:"
    fetch = (
        '{"isForwarded":false,"requestHeader":{"requestApiKey":1,"requestApiVersion":12,'
        '"correlationId":1},"request":{},"response":{},"connection":"a","totalTimeMs":1}'
    )
    cut = '{"isForwarded":false,"requestHeader":{"requestApiKey":11'
    text = f"{line}{cut}\n{line}\n{line}{fetch} (kafka.request.logger)\n"
    one, events = read(tmp_path, text, Kind.REQUEST_LOG)
    assert events == []
    assert (one.summary.lines, one.summary.known, one.summary.unparsed) == (3, 1, 2)
    assert "Completed request: with JSON that is cut or broken" in one.summary.unparsed_patterns


def test_requests_inside_a_broker_log_are_read_as_well(tmp_path: Path) -> None:
    """Everything of a container may be in one file: both kinds of line count once."""
    left = leave_behind(scenario_named("late-heartbeat-answer"), tmp_path)
    mixed = tmp_path / "stdout.log"
    mixed.write_text(left.broker_log.read_text() + left.request_log.read_text())
    (one,) = read_again(tmp_path / "mixed", mixed).files
    read_again(tmp_path / "apart", left.broker_log, left.request_log)
    assert (one.kind, one.more) in ((Kind.LOG, Kind.REQUEST_LOG), (Kind.REQUEST_LOG, Kind.LOG))
    assert generations_in(tmp_path / "mixed") == generations_in(tmp_path / "apart")
