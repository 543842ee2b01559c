"""The models of librdkafka and franz-go beside what the real clients sent to a real broker."""

from pathlib import Path

import pytest

from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.client_traits import FRANZ_GO, LIBRDKAFKA, ClientTraits
from coordinator_sim.clients.librdkafka import LibrdkafkaConsumer
from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim_conformance.recorded.recording import NODE, TOPIC
from coordinator_sim_conformance.recorded.rehearsal import Rehearsal
from tests.unit.clients import rehearsals

RECORDED = Path(__file__).parent / "recorded"


@pytest.mark.parametrize("traits", [LIBRDKAFKA, FRANZ_GO], ids=lambda traits: traits.name)
@pytest.mark.parametrize(("situation", "client_id", "process"), rehearsals.SITUATIONS)
def test_a_model_sends_what_the_client_sent(
    traits: ClientTraits, situation: str, client_id: str, process: int
) -> None:
    """Every group request of the recording comes, with its fields, at its time; no other does."""
    rehearsals.rehearse(RECORDED, traits, situation, client_id, process)


@pytest.mark.parametrize(("situation", "client_id", "process"), rehearsals.NEW_SITUATIONS)
def test_the_model_of_the_consumer_protocol_sends_what_librdkafka_sent(
    situation: str, client_id: str, process: int
) -> None:
    """Every heartbeat, commit and look-up of the recording comes at its time; no other does."""
    rehearsals.rehearse_new(RECORDED, situation, client_id, process)


@pytest.mark.parametrize(("situation", "client_id"), rehearsals.SHARE_SITUATIONS)
def test_the_port_of_the_share_consumer_sends_what_java_sent(
    situation: str, client_id: str
) -> None:
    """Every heartbeat, fetch and acknowledgement comes with its fields, in order, at its time."""
    rehearsals.rehearse_share(RECORDED, situation, client_id)


@pytest.mark.parametrize(
    ("situation", "setting", "value", "difference"),
    [
        ("explicit", "share.acknowledgement.mode", "implicit", "acknowledge_types"),
        ("few", "max.poll.records", "4", "max_records=4"),
        ("record-limit", "share.acquire.mode", "batch_optimized", "share_acquire_mode=0"),
        ("slow-poll", "max.poll.interval.ms", "20000", "SHARE_GROUP_HEARTBEAT"),
    ],
)
def test_a_share_consumer_that_behaves_otherwise_is_found_out(
    situation: str, setting: str, value: str, difference: str
) -> None:
    """Another mode, limit or interval is a difference."""
    _, rehearsal = rehearsals.share_rehearsal(RECORDED, situation, "a", **{setting: value})
    differences = rehearsal.play()

    assert any(difference in found.what for found in differences), differences


@pytest.mark.parametrize(
    ("situation", "setting", "value", "difference"),
    [
        ("rejoin", "enable.auto.commit", "false", "OFFSET_COMMIT is missing"),
        ("rejoin", "max.poll.interval.ms", "5000", "rebalance_timeout_ms=5000"),
        ("slow-poll", "max.poll.interval.ms", "8000", "OFFSET_FETCH is missing"),
        ("join-refused", "retry.backoff.ms", "300", "CONSUMER_GROUP_HEARTBEAT number 2"),
        ("static-close", "group.instance.id", "two", "instance_id='two'"),
    ],
)
def test_a_new_member_that_behaves_otherwise_is_found_out(
    situation: str, setting: str, value: str, difference: str
) -> None:
    """Another field, another instant or a missing commit is a difference."""
    recording = rehearsals.recording_of(RECORDED, "librdkafka-consumer", situation, "a", 0)
    port = rehearsals.new_port_of(situation, recording, **{setting: value})
    differences = Rehearsal(recording, port).play()

    assert any(difference in found.what for found in differences), differences


@pytest.mark.parametrize(
    ("traits", "setting", "value", "difference"),
    [
        (LIBRDKAFKA, "heartbeat_interval_ms", "1500", "HEARTBEAT"),
        (FRANZ_GO, "heartbeat_interval_ms", "1000", "HEARTBEAT"),
        (LIBRDKAFKA, "session_timeout_ms", "5000", "JOIN_GROUP"),
        (FRANZ_GO, "enable_auto_commit", "false", "OFFSET_COMMIT is missing"),
    ],
)
def test_a_model_that_behaves_otherwise_is_found_out(
    traits: ClientTraits, setting: str, value: str, difference: str
) -> None:
    """Another interval, another field or a missing commit is a difference."""
    recording = rehearsals.recording_of(RECORDED, traits.name, "rejoin", "a", 0)
    settings = {setting.replace("_", "."): value}
    differences = Rehearsal(
        recording, rehearsals.port_of(traits, "rejoin", "a", recording, **settings)
    ).play()

    assert any(difference in found.what for found in differences)


def test_a_process_that_was_not_recorded_is_not_found() -> None:
    """The error says how many there are."""
    with pytest.raises(DataError, match="has 2 processes of 'a', not 2"):
        rehearsals.recording_of(RECORDED, "librdkafka", "static-close", "a", 2)


def test_librdkafka_refuses_assignors_of_two_protocols() -> None:
    """A group of librdkafka cannot move from eager to cooperative as Java's does."""
    with pytest.raises(ConfigError, match="one rebalance protocol"):
        LibrdkafkaConsumer(
            LIBRDKAFKA.config_from({}),
            client_id="a",
            group_id="g",
            topics=(TOPIC,),
            assignors=(
                make_consumer_assignor("range"),
                make_consumer_assignor("cooperative-sticky"),
            ),
            bootstrap=(NODE,),
        )
