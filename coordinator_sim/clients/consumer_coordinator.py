"""A consumer's coordinator: subscription, assignment, callbacks, positions.

The driver polls it as an application polls KafkaConsumer. Records do not pass through here: the
driver tells positions with `advance_position`, and ends a poll early with `fetch_completed`.

Source: kafka trunk, clients/.../consumer/internals/ConsumerCoordinator.java and
ClassicKafkaConsumer.poll.
"""

from collections.abc import Mapping, Sequence

from coordinator_sim.assignors.contract import ConsumerAssignor, RebalanceProtocol
from coordinator_sim.clients.backoff import NO_JITTER, Jitter
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.consumer_leader import ConsumerLeader, select_rebalance_protocol
from coordinator_sim.clients.effects import CallbackKind, Effects
from coordinator_sim.clients.exceptions import ILLEGAL_STATE, KAFKA, RETRIABLE, WAKEUP
from coordinator_sim.clients.generation import Generation, MemberState
from coordinator_sim.clients.network import FOREVER, Future
from coordinator_sim.clients.port_core import AppCall, Wait
from coordinator_sim.errors import WireFormatError
from coordinator_sim.protocol.embedded import Subscription
from coordinator_sim.protocol.messages import (
    NO_GENERATION_ID,
    UNKNOWN_MEMBER_ID,
    JoinGroupProtocol,
    Node,
)
from coordinator_sim.protocol.resources import TopicPartition
from coordinator_sim.wire.consumer_protocol import decode_assignment, encode_subscription


class ConsumerCoordinator(ConsumerLeader):
    """The port of a consumer that subscribes to topics.

    Args:
        config: Timeouts and switches.
        client_id: Names the client in choices of chance; the broker sees the driver's.
        group_id: The group.
        topics: The first subscription; empty to subscribe later.
        assignors: In order of preference; they must have a rebalance protocol in common.
        bootstrap: The brokers to ask first.
        jitter: Where chance comes from.

    Raises:
        ConfigError: no assignor, or assignors without a common rebalance protocol.
    """

    __slots__ = (
        "_auto_commit_future",
        "_completing",
        "_fetch_attempts",
        "_join_prepare_deadline_ms",
        "_joined_subscription",
        "_pending_revocation",
        "_position_fetch",
        "_steady_version",
    )

    def __init__(  # noqa: PLR0913 - everything a client is configured with, by keyword
        self,
        config: ConsumerConfig,
        *,
        client_id: str,
        group_id: str,
        topics: Sequence[str],
        assignors: Sequence[ConsumerAssignor],
        bootstrap: tuple[Node, ...],
        jitter: Jitter = NO_JITTER,
    ) -> None:
        super().__init__(
            config, client_id=client_id, group_id=group_id, bootstrap=bootstrap, jitter=jitter
        )
        self._init_commits()
        self._init_leader(config, tuple(assignors), select_rebalance_protocol(assignors))
        self._next_auto_commit_ms = config.auto_commit_interval_ms
        self._joined_subscription: tuple[str, ...] | None = None
        self._auto_commit_future: Future | None = None
        self._join_prepare_deadline_ms = FOREVER
        self._pending_revocation = False
        self._completing: tuple[TopicPartition, ...] = ()
        self._position_fetch: tuple[tuple[TopicPartition, ...], Generation, Future] | None = None
        self._fetch_attempts = 0
        self._steady_version = -1
        self._set_subscription(topics)

    # What the driver sees and tells.

    @property
    def protocol_type(self) -> str:
        """`consumer`."""
        return "consumer"

    @property
    def member_id(self) -> str:
        """The id the coordinator gave; empty before, and after a reset."""
        return self._generation.member_id

    @property
    def owned_partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions assigned now, by topic and partition."""
        return tuple(self._assigned)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of every assigned partition whose position is known."""
        return {tp: offset for tp, offset in self._assigned.items() if offset is not None}

    @property
    def fetchable(self) -> dict[TopicPartition, int]:
        """Those of `positions` to fetch from; none while a last commit before a revocation runs."""
        return {} if self._pending_revocation else self.positions

    def advance_position(self, partition: TopicPartition, offset: int) -> None:
        """The application consumed up to `offset`; ignored where not assigned any more."""
        if partition in self._assigned:
            self._assigned[partition] = offset

    def subscribe(self, topics: Sequence[str], now_ms: int) -> Effects:
        """Replace the subscription; the next poll rejoins if it changed."""
        self._set_subscription(topics)
        return self._settle(now_ms)

    def unsubscribe(self, now_ms: int) -> Effects:
        """Give everything up and leave; ends with `PollReturned`.

        Source: kafka trunk, ClassicKafkaConsumer.unsubscribe.
        """
        self._begin_call(AppCall.UNSUBSCRIBE, now_ms)
        self._on_leave_prepare(now_ms)
        return self._settle(now_ms)

    def commit(
        self, offsets: Mapping[TopicPartition, int], *, sync: bool, now_ms: int
    ) -> tuple[int, Effects]:
        """Commit the offsets; `CommitCompleted` with the returned token ends it.

        A synchronous commit is a call, also of a callback, for at most `default.api.timeout.ms`.
        The completion of an asynchronous one is delivered inside the application's next call.
        """
        token, self._next_token = self._next_token, self._next_token + 1
        if sync:
            self._begin_call(AppCall.COMMIT, now_ms + self._consumer_config.default_api_timeout_ms)
            self._call_token = token
            fenced = self._invoke_completed_commits()
            if fenced is None:
                self._commit_sync(offsets, now_ms)
            else:
                self._end_call(now_ms, fenced)
        else:
            self._invoke_completed_commits()
            self._commit_async(token, offsets, now_ms)
        return token, self._settle(now_ms)

    # poll

    def poll(self, now_ms: int, timeout_ms: int) -> Effects:
        """Begin `KafkaConsumer.poll(timeout)`; ends with `PollReturned`."""
        if timeout_ms > 0 and self._is_steady(now_ms):
            self._call = AppCall.POLL
            self._call_deadline_ms = now_ms + timeout_ms
            self._poll_heartbeat(now_ms)
            self._poll_network_wait(now_ms)
            self._arm()
            return ()
        self._begin_call(AppCall.POLL, now_ms + timeout_ms)
        if self._wakeup_requested:
            self._wakeup_requested = False
            self._end_call(now_ms, WAKEUP)
        else:
            self._block(Wait.NETWORK, now_ms, self._poll_loop)
        return self._settle(now_ms)

    def _is_steady(self, now_ms: int) -> bool:
        """Whether a poll would look at everything and find nothing to do but wait."""
        node_id = self._coordinator
        return (
            self._call is AppCall.NONE
            and now_ms < self._deadline_ms
            and self._heartbeat_running
            and self._state is MemberState.STABLE
            and self._steady_version == self._metadata.version
            and node_id is not None
            and not self._rejoin_needed
            and self._join_future is None
            and self._joined_subscription == self._subscription
            and not self._completed_commits
            and not self._async_commit_fenced
            and not self._wakeup_requested
            and not self._inbox
            and not self._net.failed
            and not self._net.is_unavailable(node_id, now_ms)
            and (now_ms < self._next_auto_commit_ms or not self._consumer_config.enable_auto_commit)
        )

    def fetch_completed(self, now_ms: int) -> Effects:
        """Records arrived: a poll that only waits for them returns now."""
        if self.awaits_records:
            self._end_call(now_ms)
        return self._settle(now_ms)

    def _poll_loop(self, now_ms: int) -> None:
        """One turn of the loop of ClassicKafkaConsumer.poll, up to where it must wait."""
        self._update_metadata_snapshot()
        error = self._invoke_completed_commits()
        if error is None and not self._subscription:
            error = ILLEGAL_STATE
        if error is None:
            error = self._poll_heartbeat(now_ms)
        if error is not None:
            self._end_call(now_ms, error)
        else:
            self._ensure_coordinator_ready(
                now_ms, deadline_ms=self._call_deadline_ms, then=self._poll_coordinator_ready
            )

    def _poll_coordinator_ready(self, ready: bool, now_ms: int) -> None:
        if not ready:
            self._poll_network_wait(now_ms)
        elif self._rejoin_needed_or_pending():
            # poll(Duration) does not wait for the join: it returns records meanwhile.
            self._ensure_active_group(now_ms, deadline_ms=now_ms, then=self._poll_group_active)
        else:
            self._poll_positions(now_ms)

    def _poll_group_active(self, active: bool, now_ms: int) -> None:
        if active:
            self._poll_positions(now_ms)
        else:
            self._poll_network_wait(now_ms)

    def _poll_positions(self, now_ms: int) -> None:
        """Commit if it is time, then fetch the committed offsets of new partitions."""
        if self._consumer_config.enable_auto_commit and now_ms >= self._next_auto_commit_ms:
            self._next_auto_commit_ms = now_ms + max(
                1, self._consumer_config.auto_commit_interval_ms
            )
            self._commit_async(None, self.positions, now_ms)
        self._fetch_attempts = 0
        self._fetch_round(now_ms)

    def _poll_network_wait(self, now_ms: int) -> None:
        """Wait for anything to arrive, as pollForFetches does."""
        until_ms = self._call_deadline_ms
        until_ms = min(until_ms, self._join_prepare_deadline_ms)
        rejoining = self._rejoin_needed_or_pending()
        if self._consumer_config.enable_auto_commit and self._assigned and not rejoining:
            until_ms = min(until_ms, self._next_auto_commit_ms)
        if self._net.is_idle() and (rejoining or self._initializing()):
            until_ms = min(until_ms, now_ms + self._config.retry_backoff_ms)
        if now_ms < self._call_deadline_ms:
            until_ms = max(until_ms, now_ms + 1)
        self._block(Wait.NETWORK, until_ms, self._poll_again)

    def _poll_again(self, now_ms: int) -> None:
        if now_ms >= self._call_deadline_ms:
            self._end_call(now_ms)
        else:
            self._poll_loop(now_ms)

    # Positions of new partitions.

    def _initializing(self) -> tuple[TopicPartition, ...]:
        return tuple(tp for tp, offset in self._assigned.items() if offset is None)

    def _fetch_round(self, now_ms: int) -> None:
        if self._initializing():
            self._ensure_coordinator_ready(
                now_ms, deadline_ms=self._call_deadline_ms, then=self._fetch_coordinator_ready
            )
        else:
            self._steady_version = self._metadata_snapshot_version
            self._poll_network_wait(now_ms)

    def _fetch_coordinator_ready(self, ready: bool, now_ms: int) -> None:
        node_id = self._coordinator
        if not ready or node_id is None:
            self._poll_network_wait(now_ms)
            return
        wanted = self._initializing()
        pending = self._position_fetch
        if pending is None or pending[:2] != (wanted, self._generation):
            pending = self._position_fetch = (wanted, self._generation, Future())
            self._send_offset_fetch(node_id, wanted, pending[2], now_ms)
        self._block(Wait.FUTURE, self._call_deadline_ms, self._fetch_resolved, pending[2])

    def _fetch_resolved(self, now_ms: int) -> None:
        pending = self._position_fetch
        if pending is None or not pending[2].done:
            self._poll_network_wait(now_ms)
            return
        self._position_fetch = None
        error = pending[2].error
        if error is None:
            for partition in pending[0]:
                if partition in self._assigned and self._assigned[partition] is None:
                    # DEVIATION: without a committed offset the log would be asked for its
                    # beginning or end; a port has no log and starts at 0.
                    self._assigned[partition] = max(self._fetched_offsets.get(partition, -1), 0)
            self._poll_network_wait(now_ms)
        elif error not in RETRIABLE:
            self._end_call(now_ms, error)
        elif now_ms >= self._call_deadline_ms:
            self._poll_network_wait(now_ms)
        else:
            backoff_ms = self._config.retry_backoff().backoff_ms(
                self._fetch_attempts, self._jitter, site="fetch-backoff", key=self._client_id
            )
            self._fetch_attempts += 1
            until_ms = min(now_ms + backoff_ms, self._call_deadline_ms)
            self._block(Wait.SLEEP, until_ms, self._fetch_round)

    # Rejoin rules.

    def _rejoin_needed_or_pending(self) -> bool:
        if not self._subscription:
            return False
        reason = None
        if self._is_assignment_outdated():
            reason = "cached metadata has changed"
        elif self._joined_subscription not in (None, self._subscription):
            reason = "subscription has changed"
        if reason is not None:
            if not self._rejoin_needed:
                self.request_rejoin(reason)
            return True
        return super()._rejoin_needed_or_pending()

    def _join_metadata(self, now_ms: int) -> tuple[JoinGroupProtocol, ...]:  # noqa: ARG002 - hook
        self._joined_subscription = self._subscription
        rack = self._consumer_config.client_rack
        return tuple(
            JoinGroupProtocol(
                assignor.name,
                encode_subscription(
                    Subscription(
                        topics=self._subscription,
                        user_data=assignor.subscription_user_data(self._subscription),
                        owned_partitions=self.owned_partitions,
                        generation_id=self._generation.generation_id,
                        rack_id=rack or None,
                    )
                ),
            )
            for assignor in self._assignors
        )

    # onJoinPrepare

    def _on_join_prepare(self, now_ms: int) -> None:
        """Commit if automatic, then give up what the rebalance protocol demands."""
        if self._join_prepare_deadline_ms == FOREVER:
            self._join_prepare_deadline_ms = now_ms + self._config.rebalance_timeout_ms
        if self._consumer_config.enable_auto_commit and self._auto_commit_future is None:
            # Source: kafka trunk, ConsumerCoordinator.maybeMarkPartitionsPendingRevocation.
            self._pending_revocation = self._protocol is RebalanceProtocol.EAGER
            self._auto_commit_future = self._commit_async(None, self.positions, now_ms)
        future = self._auto_commit_future
        if future is not None and now_ms < self._join_prepare_deadline_ms:
            retry = future.error is not None and future.error in RETRIABLE
            if future.done:
                self._auto_commit_future = None
            if retry or not future.done:
                self._join_prepared(completed=False, now_ms=now_ms)
                return
        self._give_up_partitions(now_ms)

    def _give_up_partitions(self, now_ms: int) -> None:
        generation_id, member_id, _ = self._generation
        owned = self.owned_partitions
        if generation_id == NO_GENERATION_ID or member_id == UNKNOWN_MEMBER_ID:
            kind, given_up = CallbackKind.PARTITIONS_LOST, owned
            needed = bool(owned)
        elif self._protocol is RebalanceProtocol.EAGER:
            kind, given_up = CallbackKind.PARTITIONS_REVOKED, owned
            needed = True
        else:
            kind = CallbackKind.PARTITIONS_REVOKED
            given_up = tuple(tp for tp in owned if tp.topic not in self._subscription)
            needed = bool(given_up)
        self._completing = given_up
        if needed:
            self._run_callback(kind, self._join_prepare_ended, partitions=given_up)
        else:
            self._join_prepare_ended(None, now_ms)

    def _join_prepare_ended(self, outcome: str | None, now_ms: int) -> None:
        self._drop(self._completing)
        self._completing = ()
        self._pending_revocation = False
        self._stop_leading()
        self._join_prepare_deadline_ms = FOREVER
        self._auto_commit_future = None
        if outcome is not None:
            self._end_call(now_ms, WAKEUP if outcome == WAKEUP else KAFKA)
        else:
            self._join_prepared(completed=True, now_ms=now_ms)

    # onJoinComplete

    def _on_join_complete(self, generation: Generation, assignment: bytes, now_ms: int) -> None:
        """Adopt an assignment: revoke first (cooperative), then assign."""
        if not self._is_leader:
            self._assignment_snapshot = None
        assignor = self._assignor(generation.protocol_name)
        try:
            assigned = decode_assignment(assignment)
        except WireFormatError:
            assigned = None
        if assignor is None or assigned is None:
            self._end_call(now_ms, ILLEGAL_STATE)
            return
        partitions = tuple(sorted(assigned.partitions))
        if any(tp.topic not in self._subscription for tp in partitions):
            self.request_rejoin("received assignment does not match the current subscription")
            self._join_completed(now_ms)
            return
        self._completing = partitions
        revoked = tuple(tp for tp in self._assigned if tp not in partitions)
        if self._protocol is RebalanceProtocol.COOPERATIVE and revoked:
            self._run_callback(
                CallbackKind.PARTITIONS_REVOKED, self._revoked_in_join, partitions=revoked
            )
        else:
            self._adopt_assignment(None, now_ms)

    def _revoked_in_join(self, outcome: str | None, now_ms: int) -> None:
        if outcome == WAKEUP:
            self._end_call(now_ms, WAKEUP)
            return
        self.request_rejoin("need to revoke partitions and re-join")
        self._adopt_assignment(outcome, now_ms)

    def _adopt_assignment(self, error: str | None, now_ms: int) -> None:
        future, generation = self._join_future, self._generation
        assignor = self._assignor(generation.protocol_name)
        # A heartbeat that was refused during the revocation has reset the generation.
        if assignor is not None and future is not None:
            assignor.on_assignment(decode_assignment(future.value), generation.generation_id)
        self._next_auto_commit_ms = now_ms + self._consumer_config.auto_commit_interval_ms
        self._steady_version = -1
        owned = self._assigned
        added = tuple(tp for tp in self._completing if tp not in owned)
        self._assigned = {tp: owned.get(tp) for tp in self._completing}
        then = self._assigned_in_join if error is None else self._assigned_after_error
        self._run_callback(CallbackKind.PARTITIONS_ASSIGNED, then, partitions=added)

    def _assigned_in_join(self, outcome: str | None, now_ms: int) -> None:
        if outcome is None:
            self._join_completed(now_ms)
        else:
            self._end_call(now_ms, WAKEUP if outcome == WAKEUP else KAFKA)

    def _assigned_after_error(self, outcome: str | None, now_ms: int) -> None:
        """The revocation raised: that exception is thrown once both callbacks have run."""
        self._end_call(now_ms, WAKEUP if outcome == WAKEUP else KAFKA)

    # onLeavePrepare, unsubscribe and close

    def _on_leave_prepare(self, now_ms: int) -> None:
        owned = self.owned_partitions
        if not owned:
            self._leave_prepared(None, now_ms)
            return
        generation_id, member_id, _ = self._generation
        lost = (
            generation_id == NO_GENERATION_ID
            or member_id == UNKNOWN_MEMBER_ID
            or self._is_rebalancing()
        )
        kind = CallbackKind.PARTITIONS_LOST if lost else CallbackKind.PARTITIONS_REVOKED
        self._run_callback(kind, self._left_partitions, partitions=owned)

    def _left_partitions(self, outcome: str | None, now_ms: int) -> None:
        self._drop(self.owned_partitions)
        self._leave_prepared(outcome, now_ms)

    def _leave_prepared(self, error: str | None, now_ms: int) -> None:
        if self._call is not AppCall.UNSUBSCRIBE:
            super()._leave_prepared(error, now_ms)
        elif error is not None:
            self._end_call(now_ms, KAFKA)
        else:
            self._maybe_leave_group("the consumer unsubscribed from all topics", now_ms)
            self._set_subscription(())
            self._end_call(now_ms)

    def _begin_close(self, now_ms: int) -> None:
        """Commit a last time if automatic, then leave (ConsumerCoordinator.close)."""
        if self._consumer_config.enable_auto_commit and self.positions:
            self._commit_sync(self.positions, now_ms)
        else:
            self._close_membership(now_ms)

    def _commit_sync_ended(self, error: str | None, now_ms: int) -> None:
        if self._call is AppCall.CLOSE:
            self._invoke_completed_commits()
            self._close_membership(now_ms)
        else:
            super()._commit_sync_ended(error, now_ms)
