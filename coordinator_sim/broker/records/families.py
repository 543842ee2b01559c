"""All APIs about records as one family; it passes events of partitions on to waiting requests.

Source: kafka trunk, ReplicaManager (its purgatories).
"""

from collections.abc import Callable

from msgspec import Struct

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.contract import Handlers, Instants
from coordinator_sim.broker.quotas.quotas import Quotas
from coordinator_sim.broker.records.delete_records import DeleteRecordsApi
from coordinator_sim.broker.records.describe_logs import DescribeLogsApi, LogVolume
from coordinator_sim.broker.records.fetch import DEFAULT_FETCH_MAX_BYTES, FetchApi
from coordinator_sim.broker.records.fetch_sessions import (
    DEFAULT_SLOTS,
    SHARD_COUNT,
    DrawId,
    FetchSessionCache,
)
from coordinator_sim.broker.records.offset_lookup import OffsetApi
from coordinator_sim.broker.records.produce import ProduceApi, ProduceRules
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.broker.scheduler import Jobs, Scheduler
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.transactions.verification import OpenGate, TransactionGate
from coordinator_sim.kafka.profiles import Profile


class DataSettings(Struct, frozen=True, kw_only=True):
    """Broker settings of the data APIs.

    Args:
        fetch_max_bytes: `fetch.max.bytes`.
        fetch_session_slots: `max.incremental.fetch.session.cache.slots`.
        fetch_session_shards: Shards of that cache; 1 up to 3.8.
        conceals_topics: Whether topics without DESCRIBE are answered as unknown.
        names_invalid_records: See `Profile.names_invalid_records`.
        refuses_unknown_positions: See `Profile.refuses_unknown_positions`.
        volume: Gives the log directory of a broker by its id.
    """

    fetch_max_bytes: int = DEFAULT_FETCH_MAX_BYTES
    fetch_session_slots: int = DEFAULT_SLOTS
    fetch_session_shards: int = SHARD_COUNT
    conceals_topics: bool = False
    names_invalid_records: bool = True
    refuses_unknown_positions: bool = True
    volume: Callable[[int], LogVolume] = lambda _broker_id: LogVolume("/memory")

    @classmethod
    def of(cls, configs: Configs, profile: Profile) -> "DataSettings":
        """The settings of a cluster."""
        return cls(
            fetch_max_bytes=int(str(configs.broker_value("fetch.max.bytes"))),
            fetch_session_slots=int(
                str(configs.broker_value("max.incremental.fetch.session.cache.slots"))
            ),
            conceals_topics=profile.conceals_topics,
            names_invalid_records=profile.names_invalid_records,
            refuses_unknown_positions=profile.refuses_unknown_positions,
        )


class DataApis:
    """Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords; APIs that describe logs.

    Args:
        partitions: The partitions that the brokers host.
        access: Authorizes requests.
        jobs: Requests that are worked on in steps, because they take long.
        scheduler: Ends waits of requests.
        draw: Draws ids of fetch sessions.
        cluster_events: Told of what is appended; what they tell is passed on to requests.
        gate: Verifies transactions for Produce.
        quotas: How much consumers may fetch; None without limits.
        settings: Settings of the brokers.
    """

    __slots__ = ("_families", "fetches", "produces")

    def __init__(  # noqa: PLR0913 - what the APIs need, by keyword
        self,
        partitions: ReplicaManager,
        access: Access,
        jobs: Jobs,
        *,
        scheduler: Scheduler,
        draw: DrawId,
        cluster_events: ClusterEvents,
        gate: TransactionGate | None = None,
        quotas: Quotas | None = None,
        settings: DataSettings | None = None,
    ) -> None:
        settings = DataSettings() if settings is None else settings
        conceals = settings.conceals_topics
        self.fetches = FetchApi(
            partitions,
            access,
            jobs,
            lambda: FetchSessionCache(
                settings.fetch_session_slots, draw, settings.fetch_session_shards
            ),
            wake_by=scheduler.wake_by_wall_ms,
            quotas=quotas,
            max_bytes=settings.fetch_max_bytes,
            conceals_topics=conceals,
        )
        self.produces = ProduceApi(
            partitions,
            access,
            jobs,
            wake_by=scheduler.wake_by_wall_ms,
            gate=OpenGate() if gate is None else gate,
            touched=cluster_events.touched,
            rules=ProduceRules(
                conceals_topics=conceals, names_invalid_records=settings.names_invalid_records
            ),
        )
        self._families = (
            self.produces,
            self.fetches,
            OffsetApi(
                partitions,
                access,
                jobs,
                conceals_topics=conceals,
                refuses_unknown=settings.refuses_unknown_positions,
            ),
            DeleteRecordsApi(partitions, access, jobs),
            DescribeLogsApi(partitions, access, jobs, settings.volume),
        )
        self._listen(cluster_events)

    def handlers(self) -> Handlers:
        """Handlers of all data APIs."""
        return {api: each for family in self._families for api, each in family.handlers().items()}

    # -- what happens ----------------------------------------------------------------------

    def _listen(self, cluster_events: ClusterEvents) -> None:
        """Subscribe to the events of partitions and connections."""
        cluster_events.readable += (
            self.produces.purgatory.touched,
            self.fetches.purgatory.touched,
        )
        cluster_events.leader_changed.append(
            lambda topic, partition, _now: self.touched((topic, partition))
        )
        cluster_events.topic_deleted.append(self._topic_deleted)
        cluster_events.disconnected.append(self.disconnected)

    def touched(self, place: tuple[str, int]) -> None:
        """Recheck requests that wait on a partition: its log, leader or high watermark changed."""
        self.produces.purgatory.touched(place)
        self.fetches.purgatory.touched(place)

    def _topic_deleted(self, name: str, _id: bytes, partitions: int, _now: Instants) -> None:
        for partition in range(partitions):
            self.touched((name, partition))

    def disconnected(self, connection: int) -> None:
        """Drop the waiting requests of a closed connection."""
        self.produces.purgatory.closed(connection)
        self.fetches.purgatory.closed(connection)

    # -- time ------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Answer the requests whose wait is over."""
        self.produces.purgatory.expire(now.wall_ms)
        self.fetches.expire(now.wall_ms)

    def arm(self) -> None:
        """Arm the scheduler for the earliest end of a wait."""
        self.produces.purgatory.arm()
        self.fetches.purgatory.arm()

    def next_group_deadline_ms(self) -> int | None:
        """None: waits end by the wall clock."""
        return None
