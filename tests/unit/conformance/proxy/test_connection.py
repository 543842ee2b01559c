"""Bytes pass the proxy unchanged, however they are cut, and frames that cannot be are flagged."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import Fields, request_frame, response_frame
from coordinator_sim_conformance.proxy.connection import Connection
from coordinator_sim_conformance.proxy.exchanges import Flag
from coordinator_sim_conformance.proxy.judging import Judge

BEAT = {"groupId": "g", "generationId": 1, "memberId": "m"}
BROKERS = {"nodeId": 1, "host": "kafka", "port": 9092, "rack": None}


class Watched:
    """A connection, and what was said of it."""

    def __init__(self) -> None:
        self.flags: list[Flag] = []
        self.remarks: list[str] = []
        self.judge = Judge()
        self.connection = Connection(
            1, self.judge, lambda _: ("proxy", 1234), self.flags.append, self.remarks.append
        )


def framed(frame: bytes) -> bytes:
    """A frame with its length."""
    return len(frame).to_bytes(4, "big") + frame


def request(api: ApiKey, version: int, number: int, fields: Fields) -> bytes:
    """A request on the wire."""
    header = RequestHeader(
        api_key=int(api), api_version=version, correlation_id=number, client_id="c"
    )
    return framed(request_frame(header, fields))


def reply(api: ApiKey, version: int, number: int, fields: Fields) -> bytes:
    """A reply on the wire."""
    return framed(response_frame(api, version, number, fields))


def beat(number: int) -> bytes:
    """A heartbeat."""
    return request(ApiKey.HEARTBEAT, 4, number, BEAT)


def beaten(number: int, error: int = 0) -> bytes:
    """The answer to a heartbeat."""
    return reply(ApiKey.HEARTBEAT, 4, number, {"errorCode": error})


def produce(version: int, acks: int, transactional_id: str | None) -> bytes:
    """A Produce without records."""
    fields = {"transactionalId": transactional_id, "acks": acks, "timeoutMs": 1, "topicData": []}
    if version < 3:
        del fields["transactionalId"]
    return request(ApiKey.PRODUCE, version, 2, fields)


SENT = beat(1) + request(ApiKey.API_VERSIONS, 0, 2, {}) + produce(9, 0, "tx") + beat(3)
CAME = (
    beaten(1)
    + reply(ApiKey.API_VERSIONS, 0, 2, {"apiKeys": [{"apiKey": 1, "maxVersion": 2}] * 50})
    + beaten(3, 27)
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The pieces of a stream that is cut there."""
    ends = [0, *sorted(place % len(data) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(ends)]


CUTS = st.lists(st.integers(0, 10_000), max_size=12)


@pytest.mark.property
@given(sent=CUTS, came=CUTS)
def test_however_bytes_are_cut_they_pass_unchanged_and_are_judged(
    sent: list[int], came: list[int]
) -> None:
    """A Produce without acknowledgement has no reply, and is not waited for."""
    watched = Watched()
    forward = [watched.connection.from_client(each) for each in cut(SENT, sent)]
    back = [watched.connection.from_broker(each) for each in cut(CAME, came)]

    assert b"".join(forward) == SENT
    assert b"".join(back) == CAME
    assert watched.judge.counts.exchanges == 2
    assert (watched.flags, watched.remarks) == ([], [])


@pytest.mark.parametrize(
    ("version", "transactional_id"), [(2, None), (3, "tx"), (8, None), (9, "")]
)
@pytest.mark.parametrize("acks", [0, 1, -1])
def test_a_produce_is_waited_for_if_it_asks_for_acknowledgement(
    version: int, transactional_id: str | None, acks: int
) -> None:
    """Otherwise the reply to the next request comes first."""
    watched = Watched()
    watched.connection.from_client(produce(version, acks, transactional_id) + beat(3))
    watched.connection.from_broker(beaten(3))

    assert [each.rule.rule_id for each in watched.flags] == ([] if acks == 0 else ["PX-WIRE-01"])


def test_a_reply_out_of_order_is_flagged_and_the_rest_passes_unwatched() -> None:
    """Nothing is lost, not even half a frame."""
    watched = Watched()
    watched.connection.from_client(beat(1) + beat(2) + beat(3)[:9])
    came = beaten(2) + beaten(1) + beaten(3)[:5]

    assert watched.connection.from_broker(came) == came
    assert [each.rule.rule_id for each in watched.flags] == ["PX-WIRE-01"]
    assert "correlation id 2, wanted is 1" in watched.flags[0].said
    assert watched.connection.from_broker(beaten(3)[5:]) == beaten(3)[5:]
    assert watched.connection.from_client(beat(3)[9:]) == beat(3)


def test_a_reply_that_nobody_can_read_is_flagged_and_passes() -> None:
    """A byte too few."""
    watched = Watched()
    watched.connection.from_client(beat(1))
    broken = framed(beaten(1)[4:-2])

    assert watched.connection.from_broker(broken) == broken
    assert [each.rule.rule_id for each in watched.flags] == ["PX-WIRE-02"]


@pytest.mark.parametrize("version", [0, 9, 12])
def test_addresses_of_brokers_are_replaced(version: int) -> None:
    """And nothing else of the reply."""
    watched = Watched()
    watched.connection.from_client(request(ApiKey.METADATA, version, 7, {"topics": []}))
    fields = {"brokers": [BROKERS], "topics": []}
    here = {"brokers": [BROKERS | {"host": "proxy", "port": 1234}], "topics": []}

    came = watched.connection.from_broker(reply(ApiKey.METADATA, version, 7, fields))

    assert came == reply(ApiKey.METADATA, version, 7, here)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and so on", "a frame of 369295618 bytes"),
        (request(ApiKey.SASL_HANDSHAKE, 0, 1, {"mechanism": "PLAIN"}), "SaslHandshake 0"),
    ],
)
def test_what_is_no_frame_of_kafkas_passes_unwatched(data: bytes, why: str) -> None:
    """TLS, and a login from before SaslAuthenticate; it is said."""
    watched = Watched()

    assert watched.connection.from_client(data) == data
    assert watched.connection.from_client(b"xyz") == b"xyz"
    assert watched.connection.from_broker(b"\x00\x00") == b"\x00\x00"
    assert why in watched.remarks[0]
