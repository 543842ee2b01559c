"""The models of librdkafka and franz-go beside what the real clients sent to a real broker."""

from pathlib import Path

import pytest

from conformance.recorded.recording import (
    COMPARED,
    NODE,
    TOPIC,
    RecordedAssignor,
    Recording,
    read_recording,
)
from conformance.recorded.rehearsal import TOLERANCE_MS, Rehearsal
from coordinator_sim.assignors.contract import ConsumerAssignor
from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.client_traits import FRANZ_GO, LIBRDKAFKA, ClientTraits
from coordinator_sim.clients.franz_go import FranzGoConsumer
from coordinator_sim.clients.librdkafka import LibrdkafkaConsumer
from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.protocol.api_keys import ApiKey

RECORDED = Path(__file__).parent / "recorded"
SETTINGS = {
    "session.timeout.ms": "4000",
    "heartbeat.interval.ms": "500",
    "max.poll.interval.ms": "4000",
}
LONG = {"session.timeout.ms": "10000", "max.poll.interval.ms": "10000"}
COORDINATOR_APIS = {
    "librdkafka": COMPARED,
    "franz-go": (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP),
}
JITTER_MS = 300
"""Backoffs of franz-go differ by a fifth either way; a few of them add up."""
JITTERY = ("fenced", "broker-bounce")

SITUATIONS = [
    ("start", "a", 0),
    ("rejoin", "a", 0),
    ("rejoin", "b", 0),
    ("cooperative", "a", 0),
    ("cooperative", "b", 0),
    ("killed", "a", 0),
    ("killed", "b", 0),
    ("close", "a", 0),
    ("static-close", "a", 0),
    ("static-close", "a", 1),
    ("fenced", "a", 0),
    ("fenced", "b", 0),
    ("slow-poll", "a", 0),
    ("coordinator-moved", "a", 0),
    ("refused", "a", 0),
    ("join-refused", "a", 0),
    ("broker-bounce", "a", 0),
]


def recording_of(client: str, situation: str, client_id: str, process: int) -> Recording:
    """One recorded process."""
    path = RECORDED / f"{client}-{situation}.jsonl"
    apis = COORDINATOR_APIS[client]
    return read_recording(path, client_id, process=process, coordinator_apis=apis)


def port_of(
    traits: ClientTraits, situation: str, client_id: str, recording: Recording, **settings: str
) -> LibrdkafkaConsumer | FranzGoConsumer:
    """The model, configured as the recorded program was."""
    chosen = {**SETTINGS, **settings}
    if situation in ("fenced", "static-close"):
        chosen["group.instance.id"] = "one"
    if situation == "broker-bounce":
        chosen |= LONG
    assignor: ConsumerAssignor = make_consumer_assignor("range")
    if situation == "cooperative":
        assignor = make_consumer_assignor("cooperative-sticky")
        if traits is LIBRDKAFKA:
            assignor = RecordedAssignor(recording, assignor)
    model = LibrdkafkaConsumer if traits is LIBRDKAFKA else FranzGoConsumer
    return model(
        traits.config_from(chosen),
        client_id=client_id,
        group_id=f"{traits.name}-{situation}",
        topics=(TOPIC,),
        assignors=(assignor,),
        bootstrap=(NODE,),
    )


@pytest.mark.parametrize("traits", [LIBRDKAFKA, FRANZ_GO], ids=lambda traits: traits.name)
@pytest.mark.parametrize(("situation", "client_id", "process"), SITUATIONS)
def test_a_model_sends_what_the_client_sent(
    traits: ClientTraits, situation: str, client_id: str, process: int
) -> None:
    """Every group request of the recording comes, with its fields, at its time; no other does."""
    recording = recording_of(traits.name, situation, client_id, process)
    jittery = traits is FRANZ_GO and situation in JITTERY
    rehearsal = Rehearsal(
        recording,
        port_of(traits, situation, client_id, recording),
        tolerance_ms=JITTER_MS if jittery else TOLERANCE_MS,
    )

    assert rehearsal.play() == []
    recorded = [exchange for exchange in recording.exchanges if exchange.api in COMPARED]
    assert rehearsal.compared_count >= len(recorded) - 1
    assert rehearsal.compared_count >= 6


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
    recording = recording_of(traits.name, "rejoin", "a", 0)
    settings = {setting.replace("_", "."): value}
    differences = Rehearsal(recording, port_of(traits, "rejoin", "a", recording, **settings)).play()

    assert any(difference in found.what for found in differences)


def test_a_process_that_was_not_recorded_is_not_found() -> None:
    """The error says how many there are."""
    with pytest.raises(DataError, match="has 2 processes of 'a', not 2"):
        recording_of("librdkafka", "static-close", "a", 2)


def test_librdkafka_refuses_assignors_of_two_protocols() -> None:
    """It cannot move a group from eager to cooperative as Java does."""
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
