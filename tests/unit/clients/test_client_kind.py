"""Which kind of client a group or a file belongs to."""

import pytest

from coordinator_sim.clients.client_kind import (
    ClientKind,
    kind_of_id,
    kind_of_lines,
    kind_of_settings,
    refusal,
)
from coordinator_sim.trace.events import Event, TraceEvent

UUID = "0f1e2d3c-0000-4000-8000-00000000000a"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("app-1-StreamThread-2-consumer", ClientKind.STREAMS),
        ("app-StreamThread-12-restore-consumer", None),
        ("connect-1", ClientKind.CONNECT),
        ("connect-worker-7.example:8083", ClientKind.CONNECT),
        ("connect-orders", None),
        ("connector-consumer-s3-sink-0", ClientKind.SINK),
        ("orders-1", None),
    ],
)
def test_ids_that_kafka_gives_tell_the_kind(name: str, kind: ClientKind | None) -> None:
    """A client id, and the member id that a broker makes of it."""
    assert kind_of_id(name) is kind
    assert kind_of_id(f"{name}-{UUID}") is kind


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"member_id": f"connect-1-{UUID}"}, ClientKind.CONNECT),
        ({"leader_id": f"a-StreamThread-1-consumer-{UUID}"}, ClientKind.STREAMS),
        ({"client_id": "connector-consumer-x-3"}, ClientKind.SINK),
        ({"client_id": "w", "protocol_type": "connect"}, ClientKind.CONNECT),
        ({"client_id": "w", "protocol_name": "sessioned"}, ClientKind.CONNECT),
        ({"client_id": "w", "protocol_name": "stream"}, ClientKind.STREAMS),
        ({"client_id": "connect-1", "protocol_type": "consumer"}, ClientKind.CONSUMER),
        ({"client_id": "w"}, ClientKind.CONSUMER),
        ({}, ClientKind.CONSUMER),
    ],
)
def test_lines_tell_the_kind_by_protocol_or_by_ids(
    fields: dict[str, str], kind: ClientKind
) -> None:
    """A broker's log has ids alone; what the protocol tells is stronger."""
    line = TraceEvent(seq=0, ts_us=0, event=Event.MEMBER_ADDED, group_id="g", **fields)
    assert kind_of_lines([line]) is kind


def test_settings_tell_the_kind_by_names_that_no_other_client_has() -> None:
    """What every client has tells nothing."""
    assert kind_of_settings({"application.id": "a"}) is ClientKind.STREAMS
    assert kind_of_settings({"connect.protocol": "eager"}) is ClientKind.CONNECT
    assert kind_of_settings({"group.id": "g", "session.timeout.ms": "1"}) is ClientKind.CONSUMER


def test_refusals_name_the_setting_and_the_way() -> None:
    """A clause that stands alone; none for a setting that the kind has."""
    assert "KIP-1071" in (refusal(ClientKind.STREAMS, "group.protocol") or "")
    assert (refusal(ClientKind.CONNECT, "group.instance.id") or "").startswith("group.instance.id ")
    assert refusal(ClientKind.CONSUMER, "connect.protocol") is not None
    assert refusal(ClientKind.STREAMS, "group.instance.id") is None
