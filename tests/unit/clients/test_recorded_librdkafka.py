"""The model of librdkafka beside what librdkafka 2.16.0 sent to a real broker."""

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
from conformance.recorded.rehearsal import Rehearsal
from coordinator_sim.assignors.contract import ConsumerAssignor
from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.client_traits import LIBRDKAFKA
from coordinator_sim.clients.librdkafka import LibrdkafkaConsumer
from coordinator_sim.errors import ConfigError
from coordinator_sim.protocol.api_keys import ApiKey

RECORDED = Path(__file__).parent / "recorded"
SETTINGS = {
    "session.timeout.ms": "4000",
    "heartbeat.interval.ms": "500",
    "max.poll.interval.ms": "4000",
}
STATIC = ("fenced", "static-close")
COORDINATOR_APIS = (*COMPARED, ApiKey.OFFSET_FETCH)


def port_of(situation: str, client_id: str, recording: Recording) -> LibrdkafkaConsumer:
    """The model, configured as the recorded program was."""
    settings = dict(SETTINGS)
    if situation in STATIC:
        settings["group.instance.id"] = "one"
    assignor: ConsumerAssignor = make_consumer_assignor("range")
    if situation == "cooperative":
        assignor = RecordedAssignor(recording, make_consumer_assignor("cooperative-sticky"))
    return LibrdkafkaConsumer(
        LIBRDKAFKA.config_from(settings),
        client_id=client_id,
        group_id=f"librdkafka-{situation}",
        topics=(TOPIC,),
        assignors=(assignor,),
        bootstrap=(NODE,),
    )


@pytest.mark.parametrize(
    ("situation", "client_id", "process", "request_count"),
    [
        ("start", "a", 0, 18),
        ("rejoin", "a", 0, 27),
        ("rejoin", "b", 0, 11),
        ("cooperative", "a", 0, 30),
        ("cooperative", "b", 0, 15),
        ("killed", "a", 0, 32),
        ("killed", "b", 0, 9),
        ("close", "a", 0, 11),
        ("static-close", "a", 0, 9),
        ("static-close", "a", 1, 7),
        ("fenced", "a", 0, 9),
        ("fenced", "b", 0, 11),
        ("slow-poll", "a", 0, 28),
        ("coordinator-moved", "a", 0, 21),
        ("refused", "a", 0, 28),
        ("join-refused", "a", 0, 12),
        ("broker-bounce", "a", 0, 18),
    ],
)
def test_the_model_sends_what_librdkafka_sent(
    situation: str, client_id: str, process: int, request_count: int
) -> None:
    """Every group request of the recording comes, with its fields, at its time; no other does."""
    recording = read_recording(
        RECORDED / f"librdkafka-{situation}.jsonl",
        client_id,
        process=process,
        coordinator_apis=COORDINATOR_APIS,
    )
    rehearsal = Rehearsal(recording, port_of(situation, client_id, recording))

    assert rehearsal.play() == []
    assert rehearsal.compared_count == request_count


def test_assignors_of_two_protocols_are_refused() -> None:
    """A librdkafka member cannot move a group from eager to cooperative as Java does."""
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
