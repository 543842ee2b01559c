"""Script commands about records: producing them, transactions, settings of a group.

Each takes the words after its name; its docstring shows its form in a script. A script that uses
them begins with `broker records=yes`.
"""

from typing import Final

from coordinator_sim.log.format.record_batches import NO_ID, RecordBatch, encode_record_batch
from coordinator_sim.log.format.record_bytes import Record
from coordinator_sim_conformance.script import bodies
from coordinator_sim_conformance.script.comparing import names_of, options_of
from coordinator_sim_conformance.script.stage import Actor, CaseBroken, Stage
from coordinator_sim_conformance.targets.target import Json, Outcome

_PRODUCE: Final = 11
"""The newest version in which a transaction's partitions are added by a request of their own."""
_ADD_PARTITIONS: Final = 3
_END: Final = 3
_INIT_PRODUCER: Final = 4
_CONFIGURE: Final = 1
_GROUP_RESOURCE: Final = 32
_OF_TRANSACTIONS: Final = 1
_TIMEOUT_MS: Final = 10_000
_TRIES: Final = 40
_PAUSE_MS: Final = 250
_TIMELESS_MS: Final = -1
"""A timestamp that no broker finds too old or too new."""


def configure(stage: Stage, words: list[str]) -> Outcome:
    """`configure share.auto.offset.reset=earliest`: settings of the script's group."""
    stage.ready()
    changes = [
        {"name": name, "configOperation": 0, "value": value}
        for name, value in options_of(words).items()
    ]
    resource = {
        "resourceType": _GROUP_RESOURCE,
        "resourceName": stage.group,
        "configs": changes,
    }
    data: Json = {"resources": [resource], "validateOnly": False}
    return stage.answered(stage.call("configure", "IncrementalAlterConfigs", _CONFIGURE, data, {}))


def produce(stage: Stage, words: list[str]) -> Outcome:
    """`produce foo-0 5 [by=P]`: a batch of 5 records, of producer P in its transaction."""
    stage.ready()
    (place, count), options = names_of(words), options_of(words)
    topic, _, partition = place.rpartition("-")
    writer = stage.actor(options["by"]) if "by" in options else Actor()
    batch = _batch(writer, place, int(count))
    entry = {"index": int(partition), "records": bodies.text(batch)}
    data: Json = {
        "transactionalId": options.get("by"),
        "acks": -1,
        "timeoutMs": _TIMEOUT_MS,
        "topicData": [{"name": topic, "partitionData": [entry]}],
    }
    return stage.answered(stage.call("produce", "Produce", _PRODUCE, data, options))


def _batch(writer: Actor, place: str, count: int) -> bytes:
    """Return a batch; that of a producer in a transaction continues its sequence."""
    producer_id, epoch = writer.producer
    sequence = NO_ID
    if producer_id >= 0:
        sequence = writer.sequences.get(place, 0)
        writer.sequences[place] = sequence + count
    records = tuple(
        Record(offset=index, timestamp_ms=_TIMELESS_MS, key=None, value=b"%d" % index)
        for index in range(count)
    )
    return encode_record_batch(
        RecordBatch(
            base_offset=0,
            last_offset=count - 1,
            records=records,
            base_timestamp_ms=_TIMELESS_MS,
            max_timestamp_ms=_TIMELESS_MS,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=producer_id >= 0,
        )
    )


# -- transactions --------------------------------------------------------------------------


def begin(stage: Stage, words: list[str]) -> None:
    """`begin P`: the producer P gets its id, once there is a coordinator of transactions."""
    (label,) = words
    stage.ready()
    writer = stage.actor(label)
    find = bodies.find_coordinator(1, [label], _OF_TRANSACTIONS)
    fields: Json = {
        "transactionalId": label,
        "transactionTimeoutMs": 60_000,
        "producerId": -1,
        "producerEpoch": -1,
    }
    for _ in range(_TRIES):
        stage.observe(stage.call("find", "FindCoordinator", 1, find, {}))
        stage.observe(stage.call(label, "InitProducerId", _INIT_PRODUCER, fields, {}))
        stage.await_answers()
        if writer.producer[0] >= 0:
            return
        stage.observe(stage.target.advance(_PAUSE_MS))
    raise CaseBroken(f"no producer id for {label}", tuple(stage.transcript))


def enlist(stage: Stage, words: list[str]) -> Outcome:
    """`enlist P foo-0 foo-1`: AddPartitionsToTxn."""
    label, *places = words
    topics: dict[str, list[int]] = {}
    for place in places:
        topic, _, partition = place.rpartition("-")
        topics.setdefault(topic, []).append(int(partition))
    producer_id, epoch = stage.actor(label).producer
    data: Json = {
        "v3AndBelowTransactionalId": label,
        "v3AndBelowProducerId": producer_id,
        "v3AndBelowProducerEpoch": epoch,
        "v3AndBelowTopics": [{"name": name, "partitions": each} for name, each in topics.items()],
    }
    return stage.answered(stage.call(label, "AddPartitionsToTxn", _ADD_PARTITIONS, data, {}))


def end(stage: Stage, words: list[str]) -> Outcome:
    """`end P COMMIT`, `end P ABORT`: EndTxn."""
    label, how = words
    producer_id, epoch = stage.actor(label).producer
    data: Json = {
        "transactionalId": label,
        "producerId": producer_id,
        "producerEpoch": epoch,
        "committed": how == "COMMIT",
    }
    return stage.answered(stage.call(label, "EndTxn", _END, data, {}))
