"""A share partition with all that it talks to, and a clock that a test turns."""

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.broker.shares import share_values
from coordinator_sim.broker.shares.acquisition_locks import AcquisitionLocks
from coordinator_sim.broker.shares.persister import SharePartitionKey, StateBatch, StateRead
from coordinator_sim.broker.shares.share_partition import SharePartition
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.share_types import ShareAcquireMode
from coordinator_sim.log.contract import AbortedTransaction
from coordinator_sim.messages.share_acknowledge import AcknowledgementBatch
from tests.unit.broker.shares.held_answers import HeldLetters, HeldPersister, ScriptedOffsets

TOPIC_ID = bytes(range(16))
LOCK_MS = 30_000
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
Range = tuple[int, int]
Delivery = tuple[int, int, int]


class Stage:
    """One share partition, its share coordinator and its clock.

    Args:
        stored: What the share coordinator has.
        offsets: The log's, by `earliest`, `latest` and `timestamp`.
        letters: The queue for dead letters; None for a release without.
        settings: Of the group.
    """

    def __init__(
        self,
        *stored: StateBatch,
        start_offset: int = 0,
        offsets: dict[str, int | None] | None = None,
        letters: HeldLetters | None = None,
        **settings: object,
    ) -> None:
        self.settings = share_values.ShareSettings(**settings)  # type: ignore[arg-type]
        self.persister = HeldPersister(StateRead(3, start_offset, stored))
        self.fetchable = 0
        self._now_ms = 1_000_000
        self.partition = SharePartition(
            SharePartitionKey("g", TOPIC_ID, 0),
            7,
            topic="t",
            settings=lambda: self.settings,
            persister=self.persister,
            offsets=ScriptedOffsets(offsets or {}),
            locks=AcquisitionLocks(Scheduler().wake_by_group_ms),
            on_fetchable=self._became_fetchable,
            dead_letters=letters,
        )

    def _became_fetchable(self) -> None:
        self.fetchable += 1

    @property
    def now(self) -> Instants:
        """The present."""
        return Instants(self._now_ms, self._now_ms)

    def initialize(self) -> list[Refusal | None]:
        """Read the state; what was told is in the list, now or later."""
        told: list[Refusal | None] = []
        self.partition.maybe_initialize(self.now, told.append)
        return told

    def acquire(
        self,
        member_id: str,
        *batches: Range | share_values.FetchedBatch,
        max_records: int = 500,
        batch_size: int = 500,
        exactly: bool = False,
        aborted: tuple[AbortedTransaction, ...] | None = None,
    ) -> list[Delivery]:
        """Fetch batches from the next offset for a member; first, last and count of deliveries."""
        fetched = tuple(
            one if isinstance(one, share_values.FetchedBatch) else share_values.FetchedBatch(*one)
            for one in batches
        )
        request = share_values.AcquireRequest(
            member_id=member_id,
            mode=ShareAcquireMode.RECORD_LIMIT if exactly else ShareAcquireMode.BATCH_OPTIMIZED,
            batch_size=batch_size,
            max_fetch_records=max_records,
            fetch_offset=self.partition.next_fetch_offset(),
            batches=fetched,
            aborted=aborted or (),
            is_read_committed=aborted is not None,
        )
        acquired = self.partition.acquire(request, self.now)
        assert acquired.count == sum(
            one.last_offset - one.first_offset + 1 for one in acquired.records
        )
        return [(one.first_offset, one.last_offset, one.delivery_count) for one in acquired.records]

    def acknowledge(
        self, member_id: str, *acknowledged: tuple[int, int, int | tuple[int, ...]]
    ) -> list[Refusal | None]:
        """Acknowledge ranges by a type, or by one for each record."""
        told: list[Refusal | None] = []
        batches = [
            AcknowledgementBatch(first, last, (types,) if isinstance(types, int) else types)
            for first, last, types in acknowledged
        ]
        self.partition.acknowledge(member_id, batches, self.now, told.append)
        return told

    def release(self, member_id: str) -> list[Refusal | None]:
        """End a member's session."""
        told: list[Refusal | None] = []
        self.partition.release_acquired_records(member_id, self.now, told.append)
        return told

    def advance(self, ms: int) -> None:
        """Let time pass."""
        self._now_ms += ms
        self.partition.expire(self.now)


def active(*stored: StateBatch, **options: object) -> Stage:
    """A stage whose partition has read its state."""
    stage = Stage(*stored, **options)  # type: ignore[arg-type]
    assert stage.initialize() == [None]
    return stage


def invalid_state(text: str) -> list[Refusal | None]:
    """What is told of records in another state than the request thinks."""
    return [Refusal(ErrorCode.INVALID_RECORD_STATE, text)]
