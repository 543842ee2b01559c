"""The share partitions of one broker: made when they are first fetched, fenced when they go.

Source: kafka 4.3.1, core/.../share/SharePartitionManager and SharePartitionCache.
"""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.purgatory import Place, Purgatory
from coordinator_sim.broker.records.fetch_sessions import FetchPlace
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.broker.shares.acknowledgements import Batches, Outcomes, outcome
from coordinator_sim.broker.shares.acquisition_locks import AcquisitionLocks
from coordinator_sim.broker.shares.answers import Found
from coordinator_sim.broker.shares.dead_letters import DeadLetterQueue
from coordinator_sim.broker.shares.delayed_fetch import DelayedShareFetch, ShareFetch, WatchKey
from coordinator_sim.broker.shares.log_access import LeaderLog, ShareReader
from coordinator_sim.broker.shares.persister import Persister, SharePartitionKey
from coordinator_sim.broker.shares.sessions import SessionKey, ShareSessionCache
from coordinator_sim.broker.shares.share_partition import SharePartition
from coordinator_sim.broker.shares.share_values import ShareSettings, Watch
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode

_SESSIONS: Final = "group.share.max.share.sessions"
_RENEWS: Final = "share.renew.acknowledge.enable"
"""Renewals are always on in releases without this setting."""
_FENCING: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Errors after which another broker, or nobody, has the share partition."""
_UNHOSTED: Final = Refusal(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
)


def settings_of(configs: Configs, group_id: str) -> ShareSettings:
    """What a share group's partitions go by, as it is set now.

    Some of it is a setting of brokers alone in 4.2.
    """

    def number(name: str) -> int:
        if name in configs.group:
            return int(str(configs.group_value(group_id, name)))
        return int(str(configs.broker_value(f"group.{name}")))

    renews = configs.group_value(group_id, _RENEWS) if _RENEWS in configs.group else True
    return ShareSettings(
        record_lock_duration_ms=number("share.record.lock.duration.ms"),
        delivery_count_limit=number("share.delivery.count.limit"),
        partition_max_record_locks=number("share.partition.max.record.locks"),
        auto_offset_reset=str(configs.group_value(group_id, "share.auto.offset.reset")),
        is_renew_acknowledge_enabled=bool(renews),
    )


class SharePartitionManager:
    """The share partitions of one broker, their sessions, and the fetches that wait for them.

    Args:
        broker_id: The broker.
        hosted: The partitions that the brokers host.
        configs: Settings of groups.
        persister: Keeps the state.
        dead_letters: Takes records that are given up; None where the release knows of none.
        scheduler: Calls `expire` in time.
        watch: See `SharePartition`.

    Attributes:
        reader: Reads logs.
        sessions: The share sessions.
        now: The present of the verb under way.
    """

    def __init__(  # noqa: PLR0913 - what Kafka's is made of, and who watches it
        self,
        broker_id: int,
        hosted: ReplicaManager,
        configs: Configs,
        *,
        persister: Persister,
        dead_letters: DeadLetterQueue | None,
        scheduler: Scheduler,
        watch: Watch | None,
    ) -> None:
        self._broker_id = broker_id
        self._hosted = hosted
        self._configs = configs
        self._persister = persister
        self._dead_letters = dead_letters
        self._watch = watch
        self._locks = AcquisitionLocks(scheduler.wake_by_group_ms)
        self._partitions: dict[SharePartitionKey, SharePartition] = {}
        self._purgatory = Purgatory[WatchKey](scheduler.wake_by_wall_ms)
        self._touched: deque[WatchKey] = deque()
        self._is_settling = False
        self._fetch_count = 0
        self.now = Instants(0, 0)
        self.reader = ShareReader(hosted, broker_id)
        limit = int(str(configs.broker_value(_SESSIONS)))
        self.sessions = ShareSessionCache(
            limit,
            member_left=lambda key: self.release_session(key, self.now),
            group_emptied=self._group_emptied,
        )

    def stop(self) -> None:
        """The broker's process has ended. Source: BrokerServer.shutdown."""
        if self._dead_letters is not None:
            self._dead_letters.stop()

    # -- requests --------------------------------------------------------------------------

    def fetch(self, fetch: ShareFetch, then: Callable[[Found], None], now: Instants) -> None:
        """Acquire records for a member, now or when there are enough.

        Source: SharePartitionManager.fetchMessages and processShareFetch.
        """
        self.now = now
        places = rotated(fetch.places, fetch.epoch)
        self._fetch_count += 1
        delayed = DelayedShareFetch(self, fetch, self._fetch_count, then)
        if not places or not fetch.max_records or not fetch.params.max_bytes:
            delayed.finish({})
            return
        for place in places:
            self._take_part(delayed, place, now)
        if len(delayed.erroneous) == len(places):
            delayed.finish({})
        elif not delayed.try_complete(_first_key(delayed)):
            if fetch.params.max_wait_ms > 0:
                self._wait(delayed, now)
            else:
                delayed.expire()
        self._settle()

    def _take_part(self, delayed: DelayedShareFetch, place: FetchPlace, now: Instants) -> None:
        """Let a fetch read one of its partitions, as soon as its state is known."""
        key = SharePartitionKey(delayed.fetch.key.group_id, place.topic_id, place.partition)
        found = self._get_or_create(key, place)
        if isinstance(found, Refusal):
            delayed.erroneous[place] = found
            return
        delayed.partitions[place] = found
        began_before = True

        def initialized(refusal: Refusal | None) -> None:
            if refusal is not None:
                self._remove(key)
                delayed.erroneous[place] = refusal
            if not began_before:
                self._changed(key)

        found.maybe_initialize(now, initialized)
        began_before = False

    def _wait(self, delayed: DelayedShareFetch, now: Instants) -> None:
        fetch = delayed.fetch
        keys: list[WatchKey] = []
        for place in delayed.partitions:
            keys.append(SharePartitionKey(fetch.key.group_id, place.topic_id, place.partition))
            keys.append((place.topic or "", place.partition))
        deadline_ms = now.wall_ms + fetch.params.max_wait_ms
        self._purgatory.watch(delayed, keys, deadline_ms, fetch.connection)

    def _get_or_create(self, key: SharePartitionKey, place: FetchPlace) -> SharePartition | Refusal:
        """The share partition, created if absent; refused if this broker does not lead it."""
        found = self._partitions.get(key)
        if found is not None:
            return found
        named = (place.topic or "", place.partition)
        log = self._hosted.local_log(self._broker_id, named)
        state = self._hosted.image.partition(*named)
        if isinstance(log, ErrorCode) or state is None:
            error = log if isinstance(log, ErrorCode) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return Refusal(error)
        epoch = state.leader_epoch
        made = self._partitions[key] = SharePartition(
            key,
            epoch,
            topic=named[0],
            settings=lambda: settings_of(self._configs, key.group_id),
            persister=self._persister,
            offsets=LeaderLog(self._hosted, self._broker_id, named, epoch),
            locks=self._locks,
            on_fetchable=lambda: self._changed(key),
            dead_letters=self._dead_letters,
            watch=self._watch,
        )
        return made

    def acknowledge(
        self, key: SessionKey, batches: Batches, then: Callable[[Outcomes], None], now: Instants
    ) -> None:
        """Take note of what a member has done with records. Source: acknowledge.

        Raises:
            OperationAborted: Kafka throws, and the request fails.
        """
        self.now = now
        gathering = _Gathering(batches, then)
        for place, each in batches.items():
            named = SharePartitionKey(key.group_id, place.topic_id, place.partition)
            partition = self._partitions.get(named)
            if partition is None:
                gathering.put(place, _UNHOSTED)
                continue
            done = self._fencing(named, partial(gathering.put, place))
            partition.acknowledge(key.member_id, each, now, done)
            self._touched.append(named)
        self._settle()

    def release_session(self, key: SessionKey, now: Instants) -> None:
        """End a member's session, and let others have what it had acquired."""
        self.now = now
        session = self.sessions.get(key)
        if session is None:
            return
        self.sessions.remove(key)
        for topic_id, index in session.partitions:
            named = SharePartitionKey(key.group_id, topic_id, index)
            partition = self._partitions.get(named)
            if partition is not None:
                done = self._fencing(named, lambda _refusal: None)
                partition.release_acquired_records(key.member_id, now, done)
                self._touched.append(named)
        self._settle()

    def _fencing(
        self, key: SharePartitionKey, then: Callable[[Refusal | None], None]
    ) -> Callable[[Refusal | None], None]:
        """Take an outcome, and forget the share partition if it says that it is another's."""

        def done(refusal: Refusal | None) -> None:
            if refusal is not None:
                self.fence(key, refusal)
            then(refusal)
            self._settle()

        return done

    # -- fetches that wait -----------------------------------------------------------------

    def earliest_offset(self, place: FetchPlace, leader_epoch: int) -> int | Refusal:
        """Where a log begins that the broker leads at an epoch."""
        named = (place.topic or "", place.partition)
        return LeaderLog(self._hosted, self._broker_id, named, leader_epoch).earliest_offset()

    def fence(self, key: SharePartitionKey, refusal: Refusal) -> None:
        """Forget a share partition if the error says that it is another broker's.

        Source: fencedSharePartitionHandler.
        """
        if refusal.error in _FENCING:
            self._remove(key)

    def released(self, key: SharePartitionKey, place: Place) -> None:
        """Others may fetch from a share partition again."""
        self._touched += (key, place)

    def _changed(self, key: SharePartitionKey) -> None:
        """Fetches that wait for a share partition may have records now."""
        self._touched.append(key)
        self._settle()

    def _settle(self) -> None:
        """Look again at fetches that wait on what has changed, one after the other."""
        if self._is_settling:
            return
        self._is_settling = True
        try:
            while self._touched:
                self._purgatory.touched(self._touched.popleft())
        finally:
            self._is_settling = False

    def _remove(self, key: SharePartitionKey) -> None:
        """Forget a share partition. Source: removeSharePartitionFromCache."""
        partition = self._partitions.pop(key, None)
        if partition is not None:
            partition.mark_fenced()
            self._touched.append(key)

    def _group_emptied(self, group_id: str) -> None:
        self._remove_all(key for key in self._partitions if key.group_id == group_id)

    def _remove_all(self, keys: Iterable[SharePartitionKey]) -> None:
        for key in tuple(keys):
            self._remove(key)
        self._settle()

    # -- what happens ----------------------------------------------------------------------

    def readable(self, place: Place, now: Instants) -> None:
        """More can be read of a partition."""
        self.now = now
        self._touched.append(place)
        self._settle()

    def not_leading(self, topic_id: bytes, partitions: Iterable[int], now: Instants) -> None:
        """The broker leads some partitions of a topic no more. Source: SharePartitionListener."""
        self.now = now
        gone = {(topic_id, index) for index in partitions}
        self._remove_all(key for key in self._partitions if key[1:] in gone)

    def switched_off(self, now: Instants) -> None:
        """Forget all sessions and share partitions. Source: onShareVersionToggle."""
        self.now = now
        self.sessions.clear()
        self._remove_all(self._partitions)

    def disconnected(self, connection: int, now: Instants) -> None:
        """A client is gone."""
        self.now = now
        self._purgatory.closed(connection)
        self.sessions.disconnected(connection)
        self._settle()

    # -- time ------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Let go of records whose time is over, and answer those who have waited enough."""
        self.now = now
        self._locks.expire(now)
        self._purgatory.expire(now.wall_ms)
        self._settle()

    def arm(self) -> None:
        """Arm the scheduler for the next lock that runs out, and the next fetch."""
        self._locks.arm()
        self._purgatory.arm()

    def next_group_deadline_ms(self) -> int | None:
        """When the next lock runs out, or a little before."""
        return self._locks.next_deadline_ms()


class _Gathering:
    """Outcomes of some partitions, told when all are known.

    Args:
        places: The partitions; there is one at least.
        then: Takes the outcomes, in the order of the partitions.
    """

    __slots__ = ("_left", "_outcomes", "_places", "_then")

    def __init__(self, places: Iterable[FetchPlace], then: Callable[[Outcomes], None]) -> None:
        self._places = tuple(places)
        self._then = then
        self._outcomes: Outcomes = {}

    def put(self, place: FetchPlace, refusal: Refusal | None) -> None:
        """One outcome is known."""
        if refusal is None:
            self._outcomes[place] = outcome(place)
        else:
            self._outcomes[place] = outcome(place, refusal.error, refusal.text)
        if len(self._outcomes) == len(self._places):
            self._then({each: self._outcomes[each] for each in self._places})


def rotated(places: tuple[FetchPlace, ...], epoch: int) -> tuple[FetchPlace, ...]:
    """The partitions, each the first one at one epoch after the other.

    Source: PartitionRotateStrategy.rotateRoundRobin.
    """
    if len(places) < 2 or epoch < 1:  # noqa: PLR2004 - nothing to turn
        return places
    first = epoch % len(places)
    return places[first:] + places[:first]


def _first_key(delayed: DelayedShareFetch) -> WatchKey:
    place = next(iter(delayed.partitions))
    return place.topic or "", place.partition
