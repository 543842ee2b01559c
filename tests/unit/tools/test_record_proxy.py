import io
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.codec.frames import decode_response, encode_request, encode_response
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tools.decode_frames import api_name, shown, shown_line
from tools.decode_frames import main as decode
from tools.record_proxy import Fault, RecordingProxy, address, main, steer

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def receive(connection: socket.socket) -> bytes:
    """One frame without its length."""
    (length,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    return connection.recv(length, socket.MSG_WAITALL)


def send(connection: socket.socket, frame: bytes) -> None:
    """One frame with its length."""
    connection.sendall(struct.pack(">i", len(frame)) + frame)


def answer_heartbeats(server: socket.socket) -> None:
    """A broker for one connection that answers every heartbeat with no error."""
    connection, _ = server.accept()
    with connection:
        while connection.recv(1, socket.MSG_PEEK):
            correlation_id = struct.unpack(">i", receive(connection)[4:8])[0]
            send(connection, encode_response(HeartbeatResponse(), 3, correlation_id=correlation_id))


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_frames_are_passed_on_and_a_fault_is_answered_in_the_brokers_stead() -> None:
    """The broker answers the first of two heartbeats, the proxy the second; both are written."""
    out = io.StringIO()
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as server:
        broker = threading.Thread(target=answer_heartbeats, args=(server,))
        broker.start()
        proxy = RecordingProxy(("127.0.0.1", port), server.getsockname(), out, step="beats")
        with proxy.running(), socket.create_connection(("127.0.0.1", port)) as client:
            send(client, encode_request(HEARTBEAT, 3, correlation_id=1, client_id="a"))
            first = receive(client)
            steer(proxy, "fault a HEARTBEAT NOT_COORDINATOR")
            steer(proxy, "note a harmed")
            send(client, encode_request(HEARTBEAT, 3, correlation_id=2, client_id="a"))
            second = receive(client)
        broker.join()

    assert decode_response(ApiKey.HEARTBEAT, 3, first) == (1, HeartbeatResponse())
    refused = HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
    assert decode_response(ApiKey.HEARTBEAT, 3, second) == (2, refused)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["dir"] for line in lines if line["dir"] != "eof"] == [
        "open",
        "req",
        "resp",
        "note",
        "req",
        "resp",
    ]
    assert [line["seq"] for line in lines] == list(range(len(lines)))
    injected = [line for line in lines if line.get("injected")]
    assert len(injected) == 1
    assert shown_line(injected[0]).endswith("a HEARTBEAT v3 errorCode=NOT_COORDINATOR")


def played(out: io.StringIO) -> list[str]:
    """What the lines of a recording are."""
    return [json.loads(line)["dir"] for line in out.getvalue().splitlines()]


def test_connections_are_cut_refused_and_accepted_again() -> None:
    """By a fault, by a command, by a listener that is gone, and by a broker that is gone."""
    out = io.StringIO()
    port = free_port()
    beat = encode_request(HEARTBEAT, 3, correlation_id=1, client_id="a")
    there = ("127.0.0.1", port)
    with socket.create_server(("127.0.0.1", 0)) as server:
        proxy = RecordingProxy(there, server.getsockname(), out)
        with proxy.running():
            with socket.create_connection(there) as client:
                steer(proxy, "fault a HEARTBEAT DISCONNECT 1")
                send(client, beat)
                assert client.recv(1) == b""
            steer(proxy, "step second")
            with socket.create_connection(there) as client:
                send(client, beat)
                for _ in range(2):
                    connection, _ = server.accept()
                    connection.settimeout(5)
                    with connection:
                        if connection.recv(1):
                            steer(proxy, "cut a")
                            assert client.recv(1) == b""
            steer(proxy, "refuse")
            assert not answers(there)
            steer(proxy, "accept")
            assert answers(there)
            steer(proxy, "")
            server.close()
            assert answers(there)
            wait_until(lambda: "refused" in played(out))

    assert [what for what in played(out) if what in ("req", "refused")][:2] == ["req", "req"]
    assert json.loads(out.getvalue().splitlines()[-1])["step"] == "second"


def answers(there: tuple[str, int]) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection(there).close()
    except ConnectionRefusedError:
        return False
    return True


def wait_until(condition: Callable[[], bool]) -> None:
    """Look again and again, for at most five seconds."""
    deadline_s = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_the_command_line_records_what_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until standard input ends; a command that is none is told and passed over."""
    out = tmp_path / "recording.jsonl"
    monkeypatch.setattr("sys.stdin", io.StringIO("step one\nhello\nnote a begins now\n"))
    main(["--listen", f"127.0.0.1:{free_port()}", "--upstream", "127.0.0.1:9", "--out", str(out)])

    (line,) = [json.loads(text) for text in out.read_text().splitlines()]
    assert (line["step"], line["client_id"], line["note"]) == ("one", "a", "begins now")
    assert "write step, note, fault" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["fault a", "fault a HEARTBEAT NO_SUCH_ERROR", "fault a HEARTBEAT NONE often"]
)
def test_a_fault_that_cannot_be_read_is_refused(command: str) -> None:
    """The message repeats it."""
    proxy = RecordingProxy(("127.0.0.1", 0), ("127.0.0.1", 0), io.StringIO())
    with pytest.raises(ConfigError, match="CLIENT API ERROR"):
        steer(proxy, command)


def test_an_address_has_a_port() -> None:
    """And a host."""
    assert address("h:1") == ("h", 1)
    with pytest.raises(ConfigError, match="write host:port"):
        address("9092")


def test_a_fault_that_is_more_than_an_error_code_is_refused() -> None:
    """The proxy cannot invent the body of a FindCoordinator answer."""
    with pytest.raises(ConfigError, match="cannot answer FIND_COORDINATOR"):
        Fault("a", ApiKey.FIND_COORDINATOR, ErrorCode.NOT_COORDINATOR)


def test_a_recording_is_shown_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    """One client is shown, some APIs, or everything; blobs of the consumer are taken apart."""
    recording = Path(__file__).parents[1] / "clients" / "recorded" / "librdkafka-cooperative.jsonl"
    decode([str(recording)])
    everything = capsys.readouterr().out
    decode([str(recording), "--client", "b", "--api", "11", "--api", "14"])
    chosen = capsys.readouterr().out.splitlines()

    assert len(everything.splitlines()) == len(recording.read_text().splitlines())
    assert "assignment=v0(orders-0 orders-1 orders-2 orders-3)" in everything
    assert "note  a" in everything
    assert {line.split()[6] for line in chosen if "JOIN_GROUP" in line} == {"v5"}
    assert all(" b JOIN_GROUP " in line or " b SYNC_GROUP " in line for line in chosen)


def test_what_cannot_be_taken_apart_is_shown_as_it_is() -> None:
    """A blob of another kind as bytes; an API of no name by its number."""
    assert shown("metadata", b"\x7f") == "7f"
    assert (api_name(18), api_name(999)) == ("API_VERSIONS", "999")
    line = {"t_ms": 1, "step": "", "conn": 1, "dir": "req", "client_id": "a"}
    line |= {"api_key": 999, "api_version": 0, "frame": "03e700000000000100 0161".replace(" ", "")}
    assert shown_line(line).split()[-2:] == ["999", "v0"]
