"""Models of clients put in the place of recorded ones."""

from pathlib import Path

from coordinator_sim.assignors.contract import ConsumerAssignor
from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.client_traits import FRANZ_GO, LIBRDKAFKA, ClientTraits
from coordinator_sim.clients.config import ShareConsumerConfig
from coordinator_sim.clients.franz_go import FranzGoConsumer
from coordinator_sim.clients.librdkafka import LibrdkafkaConsumer, LibrdkafkaNewConsumer
from coordinator_sim.clients.share_consumer import ShareConsumer
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from coordinator_sim.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from coordinator_sim_conformance.recorded.recording import (
    COMPARED,
    NODE,
    TOPIC,
    RecordedAssignor,
    Recording,
    read_recording,
)
from coordinator_sim_conformance.recorded.rehearsal import TOLERANCE_MS, Rehearsal
from coordinator_sim_conformance.recorded.share_rehearsal import ShareRehearsal

_SETTINGS = {
    "session.timeout.ms": "4000",
    "heartbeat.interval.ms": "500",
    "max.poll.interval.ms": "4000",
}
_LONG = {"session.timeout.ms": "10000", "max.poll.interval.ms": "10000"}
_COORDINATOR_APIS = {
    "librdkafka": COMPARED,
    "librdkafka-consumer": COMPARED,
    "franz-go": (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP),
    "java-share": (ApiKey.SHARE_GROUP_HEARTBEAT,),
}
_JITTER_MS = 300
"""Backoffs of franz-go differ by a fifth either way; a few of them add up."""
_JVM_MS = 250
"""What a JVM takes longer for a call that it makes for the first time."""
_METADATA_MS = 600
"""The instants of Metadata are not compared; half of its age there, and a little."""
_JITTERY = ("fenced", "broker-bounce")

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


NEW_SITUATIONS = [
    ("start", "a", 0),
    ("rejoin", "a", 0),
    ("rejoin", "b", 0),
    ("trio", "a", 0),
    ("trio", "b", 0),
    ("trio", "c", 0),
    ("killed", "a", 0),
    ("killed", "b", 0),
    ("close", "a", 0),
    ("static-close", "a", 0),
    ("static-close", "a", 1),
    ("unreleased", "a", 0),
    ("unreleased", "b", 0),
    ("slow-poll", "a", 0),
    ("slow-callback", "a", 0),
    ("slow-callback", "b", 0),
    ("early-release", "b", 0),
    ("early-release", "d", 0),
    ("frozen", "a", 0),
    ("frozen", "b", 0),
    ("stalled", "a", 0),
    ("coordinator-moved", "a", 0),
    ("refused", "a", 0),
    ("join-refused", "a", 0),
    ("subscription", "a", 0),
    ("regex", "a", 0),
    ("manual-commit", "a", 0),
    ("manual-commit", "b", 0),
    ("upgrade", "b", 0),
    ("upgrade", "a", 1),
    ("upgrade-sticky", "b", 0),
    ("broker-bounce", "a", 0),
]
"""Processes of librdkafka with `group.protocol=consumer`."""
_NEW_SETTINGS = {
    "slow-poll": {"auto.commit.interval.ms": "20000"},
    "static-close": {"group.instance.id": "one"},
    "unreleased": {"group.instance.id": "one"},
    "broker-bounce": {"max.poll.interval.ms": "10000"},
    "manual-commit": {"enable.auto.commit": "false"},
}


SHARE_SITUATIONS = [
    ("start", "a"),
    ("few", "a"),
    ("record-limit", "a"),
    ("explicit", "a"),
    ("commit-sync", "a"),
    ("commit-async", "a"),
    ("renew", "a"),
    ("renew-sync", "a"),
    ("rejoin", "a"),
    ("rejoin", "b"),
    ("close", "a"),
    ("close-holding", "a"),
    ("slow-poll", "a"),
    ("subscription", "a"),
    ("partitions-added", "a"),
    ("refused", "a"),
    ("session-lost", "a"),
    ("commit-refused", "a"),
    ("cut", "a"),
]
"""Processes of Java's share consumer."""
_SHARE_SETTINGS = {
    "few": {"max.poll.records": "3"},
    "record-limit": {"max.poll.records": "3", "share.acquire.mode": "record_limit"},
    "partitions-added": {"metadata.max.age.ms": "1000"},
    "commit-refused": {"max.poll.records": "5"},
}
_SHARE_RULES = {
    "explicit": ("AALJA", "none"),
    "commit-sync": ("AJA", "sync"),
    "commit-async": ("AJA", "async"),
    "renew": ("NAN", "none"),
    "renew-sync": ("ANA", "sync"),
    "close-holding": ("L", "none"),
    "commit-refused": ("LA", "sync"),
}
"""How the application acknowledges and commits, where it does so by itself."""


def recording_of(
    folder: Path, client: str, situation: str, client_id: str, process: int
) -> Recording:
    """One recorded process."""
    path = folder / f"{client}-{situation}.jsonl"
    apis = _COORDINATOR_APIS[client]
    return read_recording(path, client_id, process=process, coordinator_apis=apis)


def port_of(
    traits: ClientTraits, situation: str, client_id: str, recording: Recording, **settings: str
) -> LibrdkafkaConsumer | FranzGoConsumer:
    """The model, configured as the recorded program was."""
    chosen = {**_SETTINGS, **settings}
    if situation in ("fenced", "static-close"):
        chosen["group.instance.id"] = "one"
    if situation == "broker-bounce":
        chosen |= _LONG
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


def new_port_of(situation: str, recording: Recording, **settings: str) -> LibrdkafkaNewConsumer:
    """The model of the consumer protocol, configured as the recorded program was."""
    beats = (each.request for each in recording.exchanges)
    first = next(each for each in beats if isinstance(each, ConsumerGroupHeartbeatRequest))
    chosen = {"group.protocol": "consumer", "max.poll.interval.ms": "4000"}
    return LibrdkafkaNewConsumer(
        LibrdkafkaNewConsumer.TRAITS.config_from(
            chosen | _NEW_SETTINGS.get(situation, {}) | settings
        ),
        client_id="a",
        group_id=f"librdkafka-consumer-{situation}",
        topics=("^ord.*",) if situation == "regex" else (TOPIC,),
        assignors=(),
        bootstrap=(NODE,),
        member_id=first.member_id,
    )


def rehearse_new(
    folder: Path, situation: str, client_id: str, process: int, *, slack_ms: int = 0
) -> None:
    """Every group request of a recording of the consumer protocol comes; no other does."""
    recording = recording_of(folder, "librdkafka-consumer", situation, client_id, process)
    rehearsal = Rehearsal(
        recording, new_port_of(situation, recording), tolerance_ms=slack_ms + TOLERANCE_MS
    )
    differences = rehearsal.play()
    assert differences == [], differences
    recorded = [exchange for exchange in recording.exchanges if exchange.api in COMPARED]
    assert rehearsal.compared_count >= len(recorded) - 1
    assert rehearsal.compared_count >= min(6, len(recorded))


def share_rehearsal(
    folder: Path, situation: str, client_id: str, **settings: str
) -> tuple[Recording, ShareRehearsal]:
    """A recording of a share consumer, and the port that is to play it."""
    recording = recording_of(folder, "java-share", situation, client_id, 0)
    beats = (each.request for each in recording.exchanges)
    first = next(each for each in beats if isinstance(each, ShareGroupHeartbeatRequest))
    types, commit = _SHARE_RULES.get(situation, ("", "none"))
    chosen = {"max.poll.interval.ms": "4000", **_SHARE_SETTINGS.get(situation, {})}
    if types:
        chosen["share.acknowledgement.mode"] = "explicit"
    port = ShareConsumer(
        ShareConsumerConfig.from_settings({**chosen, **settings}),
        client_id=client_id,
        group_id=f"java-share-{situation}",
        topics=("growing" if situation == "partitions-added" else TOPIC,),
        assignors=(),
        bootstrap=(NODE,),
        member_id=first.member_id,
    )
    slack_ms = _METADATA_MS if situation == "partitions-added" else _JVM_MS
    rehearsal = ShareRehearsal(recording, port, types=types, commit=commit, tolerance_ms=slack_ms)
    return recording, rehearsal


def rehearse_share(folder: Path, situation: str, client_id: str) -> None:
    """Every request of a share consumer comes with its fields, in order, at its time."""
    recording, rehearsal = share_rehearsal(folder, situation, client_id)
    differences = rehearsal.play()
    assert differences == [], differences
    recorded = [exchange for exchange in recording.exchanges if exchange.api in COMPARED]
    assert rehearsal.compared_count >= len(recorded) - 1 >= 6


def rehearse(
    folder: Path,
    traits: ClientTraits,
    situation: str,
    client_id: str,
    process: int,
    *,
    slack_ms: int = 0,
) -> None:
    """Every group request of the recording comes, with its fields, at its time; no other does."""
    recording = recording_of(folder, traits.name, situation, client_id, process)
    jittery = traits is FRANZ_GO and situation in _JITTERY
    rehearsal = Rehearsal(
        recording,
        port_of(traits, situation, client_id, recording),
        tolerance_ms=slack_ms + (_JITTER_MS if jittery else TOLERANCE_MS),
    )

    differences = rehearsal.play()
    assert differences == [], differences
    recorded = [exchange for exchange in recording.exchanges if exchange.api in COMPARED]
    assert rehearsal.compared_count >= len(recorded) - 1
    assert rehearsal.compared_count >= 6
