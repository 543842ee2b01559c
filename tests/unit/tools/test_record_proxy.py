import io
import json
import socket
import struct
import threading

import pytest

from coordinator_sim.errors import ConfigError
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.wire.frames import decode_response, encode_request, encode_response
from tools.decode_frames import shown_line
from tools.record_proxy import Fault, RecordingProxy, steer

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
            send(
                connection,
                encode_response(
                    ApiKey.HEARTBEAT, 3, HeartbeatResponse(), correlation_id=correlation_id
                ),
            )


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_frames_are_passed_on_and_a_fault_is_answered_in_the_brokers_stead() -> None:
    """Of two heartbeats the broker answers the first and the proxy the second; both are written."""
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


def test_a_fault_that_is_more_than_an_error_code_is_refused() -> None:
    """The proxy cannot invent the body of a FindCoordinator answer."""
    with pytest.raises(ConfigError, match="cannot answer FIND_COORDINATOR"):
        Fault("a", ApiKey.FIND_COORDINATOR, ErrorCode.NOT_COORDINATOR)
