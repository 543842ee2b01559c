"""Captures: what tshark takes apart is read by our own codec, whatever packets are missing."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.ingest import readers
from coordinator_sim.ingest.tcp_streams import Direction, Segment
from coordinator_sim.messages.codec.frames import encode_request, encode_response
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.server.pcap import PcapTap
from coordinator_sim.trace.events import Event, Source
from coordinator_sim.trace.exchange import Exchange
from coordinator_sim_scenarios.catalog import scenario_named
from tests.unit.ingest import runs_as_sources

needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="captures are read through tshark"
)


def framed(body: bytes) -> bytes:
    """A message with its length in front."""
    return len(body).to_bytes(4, "big") + body


def capture_of(exchanges: list[Exchange], path: Path) -> None:
    """The connections of a run as `serve` captures them."""
    happenings = sorted(
        [(each.asked_us, 1, index, each) for index, each in enumerate(exchanges)]
        + [(each.sent_us, 0, index, each) for index, each in enumerate(exchanges)],
        key=lambda entry: entry[:3],
    )
    tap = PcapTap(path)
    opened: dict[str, None] = {}
    # At one instant the answers leave before further requests of their connections come.
    answered_at_once = {
        index for index, each in enumerate(exchanges) if each.asked_us == each.sent_us
    }
    for _at_us, is_request, index, each in happenings:
        name = each.connection
        if not is_request and index in answered_at_once:
            continue
        if name not in opened:
            opened[name] = None
            port = 40_000 + len(opened)
            client = (each.client_host or "/10.0.0.9").removeprefix("/")
            tap.opened(name, (client, port), ("10.0.1.1", 9092))
        if is_request:
            tap.received(
                name,
                framed(
                    encode_request(
                        each.request,
                        each.api_version,
                        correlation_id=each.correlation_id,
                        client_id=each.client_id,
                    )
                ),
            )
        if not is_request or index in answered_at_once:
            tap.sent(
                name,
                framed(
                    encode_response(
                        each.response,
                        each.api_version,
                        correlation_id=each.correlation_id,
                        request=each.request,
                    )
                ),
            )
    tap.finish()


@needs_tshark
def test_capture_tells_the_generations_of_its_run(tmp_path: Path) -> None:
    """Members, owners and leaders; the times are those of the packets."""
    left = runs_as_sources.leave_behind(scenario_named("late-heartbeat-answer"), tmp_path)
    path = tmp_path / "run.pcap"
    capture_of(left.exchanges, path)
    importing = runs_as_sources.read_again(tmp_path / "t", path)
    (one,) = importing.files
    assert (one.problem, one.notes) == (None, [])
    assert one.summary.lines == 2 * len(left.exchanges)
    found, expected = (
        runs_as_sources.generations_in(tmp_path / "t"),
        runs_as_sources.generations_of(left.events),
    )
    assert [(key, told.members, told.owners) for key, told in found.items()] == [
        (key, told.members, told.owners) for key, told in expected.items()
    ]
    events = list(read_run(tmp_path / "t").events())
    assert {event.source for event in events} <= {Source.WIRE, None}
    joined = [event for event in events if event.event is Event.JOIN_REQ]
    assert joined[0].client_host is not None
    assert joined[0].attrs["connection"].startswith("10.0.1.1:9092-")


@needs_tshark
def test_damaged_captures_are_told(tmp_path: Path) -> None:
    """One that is cut short gives what it has; one without a packet of Kafka is no error."""
    left = runs_as_sources.leave_behind(scenario_named("late-heartbeat-answer"), tmp_path)
    path = tmp_path / "run.pcap"
    capture_of(left.exchanges, path)
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(path.read_bytes()[:-20])
    (one,) = runs_as_sources.read_again(tmp_path / "t", cut).files
    assert one.problem is not None
    assert "is damaged, its readable part was taken" in one.problem
    assert one.summary.parsed > 10


def test_missing_tshark_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tshark is not installed, the line says how to get it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "run.pcap"
    PcapTap(path).finish()
    (one,) = runs_as_sources.read_again(tmp_path / "t", path).files
    assert one.problem == readers.MISSING
    assert "apt-get install tshark" in readers.MISSING


@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_segments_in_any_order_and_number_make_the_same_frames(data: st.DataObject) -> None:
    """Retransmissions, overlaps and segments out of order change nothing."""
    bodies = [
        bytes([index]) * size
        for index, size in enumerate(
            data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=8))
        )
    ]
    stream = b"".join(framed(body) for body in bodies)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=10)))
    pieces = list(zip([0, *cuts], [*cuts, len(stream)], strict=True))
    again = data.draw(st.lists(st.sampled_from(pieces), max_size=5))
    order = data.draw(st.permutations(pieces + again))
    direction = Direction(lambda _data: True)
    direction.opened(0)
    frames = [
        frame.body
        for number, (start, end) in enumerate(order, 1)
        for frame in direction.take(segment(number, start + 1, stream[start:end]))
    ]
    assert frames == bodies
    assert (direction.lost_bytes, direction.gaps) == (0, 0)


def segment(number: int, sequence: int, payload: bytes) -> Segment:
    """A packet of a client."""
    return Segment(number, number, 0, ("a", 1), ("b", 2), sequence, opens=False, payload=payload)


def test_reading_goes_on_behind_what_a_capture_lacks() -> None:
    """A missing packet costs the message that it was part of."""
    bodies = [b"first", b"second", b"third"]
    stream = b"".join(framed(body) for body in bodies)
    direction = Direction(lambda data: data[:3] == b"\x00\x00\x00")
    parts = [(1, stream[:9]), (15, stream[14:19]), (20, stream[19:])]
    found = [
        frame.body
        for number, (sequence, payload) in enumerate(parts, 1)
        for frame in direction.take(segment(number, sequence, payload))
    ]
    found += [frame.body for frame in direction.end()]
    assert found == [b"first", b"third"]
    assert direction.gaps == 1
