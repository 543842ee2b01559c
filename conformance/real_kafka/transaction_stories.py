"""Sequences of raw requests about transactions, for any broker, with its answers.

The same stories are played with real brokers and with ours; the answers must be equal once ids are
renumbered and times are removed. Stories use only one broker.
"""

from collections.abc import Callable, Iterator
from typing import Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim_conformance.field_frames import Fields
from coordinator_sim_conformance.real_kafka.transaction_session import (
    PATIENCE,
    PAUSE_MS,
    TOPIC,
    Producer,
    Session,
    Transport,
    prepare,
)


def identities(session: Session) -> None:
    """Ask for producer ids and epochs in every version, and send invalid requests."""
    for version in range(6):
        session.init(None, version)
        session.init("a", version)
    session.call(ApiKey.INIT_PRODUCER_ID, 4, transactionalId="", transactionTimeoutMs=60_000)
    for timeout_ms in (0, -5, 900_000, 900_001):
        session.init("b", timeout_ms=timeout_ms)
    session.init("b", producerId=5)
    session.init("b", producerEpoch=5)
    session.init(None, producerId=5, producerEpoch=3)


def going_on(session: Session) -> None:
    """A producer that says who it is: after an error, repeated, fenced, with a foreign id."""
    first = session.init("a")
    named = {"producerId": first[0], "producerEpoch": first[1]}
    for version in (3, 4, 4):
        session.init("a", version, **named)
    session.init("a")
    for version in (3, 4):
        session.init("a", version, **named)
    session.init("a", producerId=first[0] + 123_456, producerEpoch=0)
    session.init("new", producerId=987_654, producerEpoch=12)


def partitions(session: Session) -> None:
    """What may be added by whom, in every version that clients send."""
    producer = session.init("a")
    newer = (producer[0], producer[1] + 1)
    other = (producer[0] + 123_456, 0)
    for version in range(4):
        session.add("a", producer, 0, version=version)
        session.add("a", newer, 0, version=version)
        session.add("a", other, 0, version=version)
        session.add("unknown", producer, 0, version=version)
        session.add_of("a", producer, {TOPIC: [1, 99], "nowhere": [0]}, version=version)
        session.add_of("a", producer, {"__consumer_offsets": [0]}, version=version)
    session.describe("a", "unknown")
    session.add("a", producer, 1, 2)
    session.describe("a")
    session.end("a", producer, committed=False)
    session.describe("a")


def batches(session: Session) -> None:
    """AddPartitionsToTxn as brokers send it to each other: many transactions, verification."""
    producers = {name: session.init(name) for name in ("a", "b")}
    session.add("a", producers["a"], 0)
    for version in (4, 5):
        for verify_only in (True, False):
            session.call(
                ApiKey.ADD_PARTITIONS_TO_TXN,
                version,
                transactions=[
                    {
                        "transactionalId": session.name(name),
                        "producerId": producer_id,
                        "producerEpoch": epoch + bump,
                        "verifyOnly": verify_only,
                        "topics": [{"name": TOPIC, "partitions": [0, 1]}],
                    }
                    for name, bump in (("a", 0), ("b", 1), ("c", 0))
                    for producer_id, epoch in [producers.get(name, producers["a"])]
                ],
            )
    session.describe("a", "b")


def classic_ends(session: Session) -> None:
    """EndTxn that keeps the epoch: every state, both ends, every version."""
    for version, committed in enumerate((True, False, True, False, True)):
        producer = session.init("a")
        session.end("a", producer, committed=committed, version=version)
        session.add("a", producer, 0)
        session.end("a", producer, committed=committed, version=version)
        session.describe("a")
        session.end("a", producer, committed=committed, version=version)
        session.end("a", producer, committed=not committed, version=version)
        newer = (producer[0], producer[1] + 1)
        session.end("a", newer, committed=committed, version=version)
        other = (producer[0] + 123_456, 0)
        session.end("a", other, committed=committed, version=version)
    session.end("unknown", (1, 0), committed=True)


def bumping_ends(session: Session) -> None:
    """EndTxn that bumps the epoch: Kafka's table of retries, and what can be done next."""
    if session.versions[ApiKey.END_TXN] < _BUMPS:
        return
    producer = session.init("a")
    for committed in (True, False):
        session.end("a", (producer[0], producer[1] - 1), committed=committed, version=_BUMPS)
    session.end("a", producer, committed=True, version=_BUMPS)
    producer = session.end("a", producer, committed=False, version=_BUMPS)
    for ended in (True, False):
        session.add("a", producer, 0)
        session.describe("a")
        before = producer
        producer = session.end("a", before, committed=ended, version=_BUMPS)
        session.describe("a")
        for committed in (True, False):
            session.end("a", before, committed=committed, version=_BUMPS)
        session.end("a", (before[0], before[1] - 1), committed=ended, version=_BUMPS)
        session.end("a", (before[0], before[1] + 2), committed=ended, version=_BUMPS)
        session.end("a", producer, committed=True, version=_BUMPS)
        producer = session.end("a", producer, committed=False, version=_BUMPS)
    session.add("a", producer, 1)
    session.end("a", producer, committed=True, version=3)
    session.end("a", producer, committed=True, version=3)
    session.end("a", producer, committed=True, version=_BUMPS)


def fencing(session: Session) -> None:
    """A producer begins while another has a transaction open; each version's word for fenced."""
    old = session.init("a")
    session.add("a", old, 0, 1)
    session.init("a")
    session.settled("a")
    session.describe("a")
    new = session.init("a")
    for version in (1, 2):
        session.add("a", old, 0, version=version)
        session.end("a", old, committed=True, version=version)
        session.call(
            ApiKey.ADD_OFFSETS_TO_TXN,
            version,
            transactionalId=session.name("a"),
            producerId=old[0],
            producerEpoch=old[1],
            groupId="g",
        )
    session.add("a", new, 2)
    session.end("a", new, committed=True)
    session.describe("a")


def records(session: Session) -> None:
    """Produce: partitions that were added and others, the end, the next transaction."""
    producer = session.init("a")
    session.add("a", producer, 0)
    session.produce("a", producer, 0, 0, 7)
    for version in (7, 9, 10, 11):
        session.produce("a", producer, 1, 0, version)
    session.produce("a", producer, 0, 1, 11)
    session.ends(0, 1)
    session.end("a", producer, committed=True)
    session.ends(0, 1)
    session.produce("a", producer, 0, 2, 9)
    newer = (producer[0], producer[1] + 5)
    session.produce("a", newer, 0, 0, 11)
    session.produce("unknown", producer, 0, 2, 11)
    session.init("a")
    session.produce("a", producer, 0, 2, 9)
    session.ends(0, 1)


def implicit_records(session: Session) -> None:
    """Produce that adds its partition: no AddPartitionsToTxn any more."""
    if session.versions[ApiKey.END_TXN] < _BUMPS:
        return
    producer = session.init("a")
    session.produce("a", producer, 2, 0, 12)
    session.describe("a")
    session.ends(2)
    bumped = session.end("a", producer, committed=True, version=_BUMPS)
    session.ends(2)
    session.produce("a", producer, 2, 1, 12)
    session.produce("a", bumped, 2, 0, 12)
    session.produce("a", bumped, 2, 1, 12)
    session.end("a", bumped, committed=False, version=_BUMPS)
    session.ends(2)


def offsets(session: Session) -> None:
    """Offsets in transactions: seen once they are committed, and only then."""
    producer = session.init("a")
    for version in range(4):
        session.call(
            ApiKey.ADD_OFFSETS_TO_TXN,
            version,
            transactionalId=session.name("a"),
            producerId=producer[0],
            producerEpoch=producer[1],
            groupId=session.name("g"),
        )
    offset = iter(range(10, 100))
    for version in (0, 2, 3, 4):
        _commit_offset(session, producer, next(offset), version)
    _fetch_offset(session)
    session.end("a", producer, committed=False)
    _fetch_offset(session)
    for version in (3, 4):
        _commit_offset(session, producer, next(offset), version)
    session.call(
        ApiKey.ADD_OFFSETS_TO_TXN,
        3,
        transactionalId=session.name("a"),
        producerId=producer[0],
        producerEpoch=producer[1],
        groupId=session.name("g"),
    )
    _commit_offset(session, producer, next(offset), 3)
    session.end("a", producer, committed=True)
    _fetch_offset(session)
    _commit_offset(session, (producer[0], producer[1] + 1), next(offset), 3)


def implicit_offsets(session: Session) -> None:
    """TxnOffsetCommit that adds its partition."""
    if session.versions[ApiKey.END_TXN] < _BUMPS:
        return
    producer = session.init("a")
    _commit_offset(session, producer, 7, 5)
    session.describe("a")
    _fetch_offset(session)
    bumped = session.end("a", producer, committed=True, version=_BUMPS)
    _fetch_offset(session)
    _commit_offset(session, producer, 8, 5)
    _commit_offset(session, bumped, 9, 5)
    session.end("a", bumped, committed=False, version=_BUMPS)
    _fetch_offset(session)


def _commit_offset(session: Session, producer: Producer, offset: int, version: int) -> None:
    partition: Fields = {
        "partitionIndex": 0,
        "committedOffset": offset,
        "committedMetadata": "",
    }
    session.call(
        ApiKey.TXN_OFFSET_COMMIT,
        version,
        transactionalId=session.name("a"),
        groupId=session.name("g"),
        producerId=producer[0],
        producerEpoch=producer[1],
        topics=[{"name": TOPIC, "partitions": [partition]}],
    )


def _fetch_offset(session: Session) -> None:
    for stable in (False, True):
        session.call(
            ApiKey.OFFSET_FETCH,
            7,
            groupId=session.name("g"),
            topics=[{"name": TOPIC, "partitionIndexes": [0]}],
            requireStable=stable,
        )


def inspection(session: Session) -> None:
    """ListTransactions and DescribeTransactions, with filters of all kinds."""
    first, second = session.init("a"), session.init("b")
    session.add("b", second, 0, 2)
    third = session.init("c")
    session.add("c", third, 1)
    session.end("c", third, committed=True)
    producer_ids = [first[0], second[0], third[0]]
    filters: list[Fields] = [
        {"stateFilters": [], "producerIdFilters": producer_ids},
        {"stateFilters": ["Ongoing"], "producerIdFilters": producer_ids},
        {"stateFilters": ["Ongoing", "Empty", "Nonsense"], "producerIdFilters": producer_ids},
        {"stateFilters": ["Nonsense"], "producerIdFilters": producer_ids},
        {"stateFilters": [], "producerIdFilters": [first[0] + 123_456]},
    ]
    for each in filters:
        session.call(ApiKey.LIST_TRANSACTIONS, 0, **each)
    for duration_ms in (-1, 0, 3_600_000):
        session.wait(20)
        session.call(ApiKey.LIST_TRANSACTIONS, 1, **filters[0], durationFilter=duration_ms)
    for pattern in ("", "inspection-[ab]", "insp", ".*-c|x", "(("):
        session.call(ApiKey.LIST_TRANSACTIONS, 2, **filters[0], transactionalIdPattern=pattern)
    session.call(
        ApiKey.DESCRIBE_TRANSACTIONS, 0, transactionalIds=[session.name("b"), "", "nobody"]
    )
    session.end("b", second, committed=False)


def timeouts(session: Session) -> None:
    """A transaction that takes too long is aborted, and its producer fenced."""
    producer = session.init("a", timeout_ms=200)
    session.add("a", producer, 0)
    session.produce("a", producer, 0, 0, 9)
    for _ in range(PATIENCE):
        (found,) = session.ask(
            ApiKey.DESCRIBE_TRANSACTIONS, 0, transactionalIds=[session.name("a")]
        )["transactionStates"]
        if found["transactionState"] == "CompleteAbort":
            break
        session.wait(PAUSE_MS)
    session.describe("a")
    session.end("a", producer, committed=True)
    session.add("a", producer, 0)
    session.produce("a", producer, 0, 1, 9)
    session.init("a", producerId=producer[0], producerEpoch=producer[1])
    fresh = session.init("a")
    session.add("a", fresh, 0)
    session.end("a", fresh, committed=True)
    session.describe("a")


def markers(session: Session) -> None:
    """WriteTxnMarkers: an operator ends what hangs; what is not there, and what is fenced."""
    producer = session.init("a")
    session.add("a", producer, 1)
    session.produce("a", producer, 1, 0, 9)
    session.ends(1)
    for epoch, coordinator_epoch in ((-1, 0), (0, 0), (0, 0), (0, -1)):
        session.call(
            ApiKey.WRITE_TXN_MARKERS,
            1,
            markers=[
                {
                    "producerId": producer[0],
                    "producerEpoch": producer[1] + epoch,
                    "transactionResult": False,
                    "topics": [
                        {"name": TOPIC, "partitionIndexes": [1, 99]},
                        {"name": "nowhere", "partitionIndexes": [0]},
                    ],
                    "coordinatorEpoch": coordinator_epoch,
                }
            ],
        )
    session.call(ApiKey.WRITE_TXN_MARKERS, 1, markers=[])
    session.end("a", producer, committed=False)


_BUMPS: Final = 5
"""The version of EndTxn that bumps the epoch."""
STORIES: Final[tuple[Callable[[Session], None], ...]] = (
    identities,
    going_on,
    partitions,
    batches,
    classic_ends,
    bumping_ends,
    fencing,
    records,
    implicit_records,
    offsets,
    implicit_offsets,
    inspection,
    timeouts,
    markers,
)


def told(transport: Transport, versions: dict[ApiKey, int]) -> Iterator[tuple[str, list[str]]]:
    """Yield every story's name, with a line for each request that it made."""
    prepare(transport)
    for story in STORIES:
        session = Session(transport, story.__name__, versions)
        story(session)
        yield story.__name__, session.lines
