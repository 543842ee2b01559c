"""What stands in the way of an upgrade: brokers, assignors, clients, static members, timeouts."""

import pytest

from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.replay.upgrade_hurdles import Hurdle, Kind, hurdles_of
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.group_shape import SeenGroup, SeenRestart


def seen(**fields: object) -> SeenGroup:
    """A group without hurdles of its own, as far as a trace can tell."""
    given: dict[str, object] = {
        "group_id": "g",
        "members": {"a": None, "b": None},
        "topics": {"t": 4},
        "assignor": "roundrobin",
        "protocol_type": "consumer",
        "session_timeout_ms": 45_000,
        "software": ("apache-kafka-java 4.1.0",),
    }
    return SeenGroup(**{**given, **fields})  # type: ignore[arg-type]


def told(version: str | None = "4.2", *events: TraceEvent, **fields: object) -> list[Hurdle]:
    """The hurdles of a group that differs in this, beside those that every group has."""
    usual = hurdles_of(seen(), (), "4.2")
    return [each for each in hurdles_of(seen(**fields), events, version) if each not in usual]


def test_every_group_has_its_settings_and_the_policy_to_look_at() -> None:
    """What consumers refuse, and what brokers allow."""
    changes, check = hurdles_of(seen(), (), "4.2")
    assert changes.kind is Kind.CHANGES
    assert "partition.assignment.strategy, session.timeout.ms" in changes.what
    assert check.kind is Kind.CHECK
    assert "group.consumer.migration.policy must be bidirectional" in check.fix


@pytest.mark.parametrize(
    ("version", "kind", "words"),
    [
        ("3.2-3.9", Kind.BLOCKS, "brokers are 3.2-3.9: the consumer protocol came with 4.0"),
        ("2.8", Kind.BLOCKS, "brokers are 2.8"),
        ("3.9-4.0", Kind.CHECK, "brokers are 3.9-4.0"),
        ("4.x", Kind.CHECK, "brokers are 4.x"),
        (None, Kind.CHECK, "does not tell the brokers' release"),
    ],
)
def test_brokers(version: str | None, kind: Kind, words: str) -> None:
    """Older ones block; a range that reaches 4.0 may do."""
    (found,) = told(version)
    assert found.kind is kind
    assert words in found.what


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({"protocol_type": "connect"}, Kind.BLOCKS, "a Connect cluster, which never converts"),
        ({"protocol_type": "sr"}, Kind.BLOCKS, "protocol type is sr"),
        ({"assignor": "sticky-by-rack"}, Kind.CHANGES, "sticky-by-rack is no assignor of Kafka's"),
        ({"assignor": "range", "topics": {"a": 4, "b": 4}}, Kind.CHANGES, "range gives the same"),
        ({"software": ("apache-kafka-java 3.9.1",)}, Kind.BLOCKS, "ready in 4.0"),
        ({"software": ("librdkafka 2.3.0",)}, Kind.BLOCKS, "ready in 2.12"),
        ({"software": ("aiokafka 0.14.0",)}, Kind.BLOCKS, "has no consumer protocol"),
        ({"software": ("own-client 1.0",)}, Kind.CHECK, "whether it has the consumer protocol"),
        ({"software": (), "members": {"kafka-python-1": None}}, Kind.CHECK, "kafka-python-1 looks"),
        ({"software": ("unknown unknown",)}, Kind.CHECK, "does not tell the clients' software"),
        ({"session_timeout_ms": 6_000}, Kind.CHANGES, "which is longer"),
        ({"session_timeout_ms": 90_000}, Kind.CHANGES, "which is sooner"),
        ({"session_timeout_ms": None}, Kind.CHECK, "does not tell session.timeout.ms"),
    ],
)
def test_groups(fields: dict[str, object], kind: Kind, words: str) -> None:
    """One difference, one hurdle."""
    (found,) = told(**fields)  # type: ignore[arg-type]
    assert found.kind is kind
    assert words in found.what


def test_no_difference_no_hurdle() -> None:
    """The assignor range with topics of several sizes, and the newest clients."""
    assert told(assignor="range", topics={"a": 4, "b": 3}) == []
    assert told(software=("librdkafka 2.12.1", "confluent-kafka-python 2.13.0")) == []


def test_static_members_that_crashed_are_counted() -> None:
    """They would have waited for their sessions to be over."""
    crash = SeenRestart(member="a", at_us=0, down_us=None, graceful=False)
    (found,) = told(members={"a": "i", "b": None}, restarts=(crash,))
    assert "1 of 2 members are static" in found.what
    assert "1 of the recorded restarts" in found.what


def test_user_data_of_assignments_blocks() -> None:
    """Brokers refuse it; a Connect cluster's assignments are none of a consumer."""

    def given(user_data: bytes | None) -> TraceEvent:
        data = encode_assignment(ConsumerAssignment(partitions=(), user_data=user_data))
        return TraceEvent(event=Event.ASSIGNED, ts_us=0, group_id="g", assignment=data)

    assert told("4.2", given(None)) == []
    (found,) = told("4.2", given(b"x"))
    assert found.kind is Kind.BLOCKS
    assert "GROUP_ID_NOT_FOUND" in found.what


@pytest.mark.parametrize(
    ("software", "kind"),
    [
        (("librdkafka 2.16.0",), Kind.BLOCKS),
        (("apache-kafka-java 4.1.0", "confluent-kafka-python 2.16.1"), Kind.BLOCKS),
        ((), Kind.CHECK),
        (("apache-kafka-java 4.1.0",), None),
    ],
)
def test_cooperative_groups_of_librdkafka_are_refused(
    software: tuple[str, ...], kind: Kind | None
) -> None:
    """Its leader's assignments carry user data, which brokers take for a custom assignor's."""
    found = hurdles_of(seen(software=software, assignor="cooperative-sticky"), (), "4.2")
    kinds = [each.kind for each in found if "cooperative-sticky of librdkafka" in each.what]
    assert kinds == ([] if kind is None else [kind])


def test_what_blocks_comes_first() -> None:
    """Then what changes, then what is to be looked at."""
    kinds = [each.kind for each in hurdles_of(seen(session_timeout_ms=9_000), (), "3.9")]
    assert kinds == [Kind.BLOCKS, Kind.CHANGES, Kind.CHANGES]
