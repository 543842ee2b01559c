"""A consumer's coordinator: subscription, assignment, callbacks, positions.

The driver polls it as an application polls KafkaConsumer. Records do not pass through here: the
driver reports positions with `advance_position`, and ends a poll early with `fetch_completed`.

A consumer's part in a rebalance: when to rejoin, what to offer, what to revoke and adopt.

Source: kafka trunk, clients/.../consumer/internals/ConsumerCoordinator.java and
ClassicKafkaConsumer.poll; ConsumerCoordinator.java, rejoinNeededOrPending, metadata, onJoinPrepare,
onJoinComplete, onLeavePrepare.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from coordinator_sim.assignors.contract import ConsumerAssignor, RebalanceProtocol
from coordinator_sim.clients.backoff import NO_JITTER, Jitter
from coordinator_sim.clients.config import CLASSIC, ConsumerConfig
from coordinator_sim.clients.consumer_leader import select_rebalance_protocol
from coordinator_sim.clients.effects import CallbackKind, CommitCompleted, Effects
from coordinator_sim.clients.exceptions import ILLEGAL_STATE, KAFKA, RETRIABLE, SCHEMA, WAKEUP
from coordinator_sim.clients.generation import Generation, MemberState
from coordinator_sim.clients.idle import REFRESH_ROOM, IdlePhases, IdleSkip
from coordinator_sim.clients.network import FOREVER, Future
from coordinator_sim.clients.port_core import AppCall, Wait
from coordinator_sim.clients.positions import ConsumerPositions
from coordinator_sim.clients.subscription_state import SubscriptionType
from coordinator_sim.errors import ConfigError, WireFormatError
from coordinator_sim.kafka.context import NO_GENERATION_ID, UNKNOWN_MEMBER_ID
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.join_group import JoinGroupRequestProtocol
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

_VERSION_SIZE = 2
"""Size of the version field, the smallest valid assignment."""


class _Adoption(NamedTuple):
    """An assignment on its way through the application's callbacks."""

    assignor: ConsumerAssignor
    assignment: ConsumerAssignment
    partitions: tuple[TopicPartition, ...]
    generation_id: int


class ConsumerCoordinator(ConsumerPositions):
    """The port of a consumer that subscribes to topics.

    Args:
        config: Timeouts and switches.
        client_id: Names the client in random choices; the broker sees the driver's id.
        group_id: The group.
        topics: The first subscription; empty to subscribe later.
        assignors: Assignors in order of preference, with a rebalance protocol in common.
        bootstrap: Brokers to ask first.
        jitter: Source of random choices.

    Raises:
        ConfigError: no assignor, or assignors without a common rebalance protocol; or another
            group protocol than the classic one.
    """

    __slots__ = (
        "_auto_commit_future",
        "_join_prepare_deadline_ms",
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
        if config.group_protocol != CLASSIC:
            raise ConfigError(
                f"group.protocol={config.group_protocol}: this consumer speaks the classic "
                "protocol alone; simulate such a group by a scenario"
            )
        super().__init__(
            config, client_id=client_id, group_id=group_id, bootstrap=bootstrap, jitter=jitter
        )
        self._init_commits()
        self._init_subscription(config, tuple(assignors), select_rebalance_protocol(assignors))
        self._init_leader()
        self._init_positions()
        self._init_rebalance()
        if topics:
            self._subscribe_topics(topics)

    def _init_rebalance(self) -> None:
        self._auto_commit_future: Future | None = None
        self._join_prepare_deadline_ms = FOREVER

    # Rejoin rules.

    def _rejoin_needed_or_pending(self) -> bool:
        if not self._subscriptions.is_automatic:
            return False
        reason = None
        if self._is_assignment_outdated():
            reason = "cached metadata has changed"
        elif self._joined_subscription not in (None, self._subscriptions.topics):
            reason = "subscription has changed"
        if reason is not None:
            if not self._rejoin_needed:
                self.request_rejoin(reason)
            return True
        return super()._rejoin_needed_or_pending()

    def _join_metadata(self, now_ms: int) -> tuple[JoinGroupRequestProtocol, ...]:  # noqa: ARG002 - hook
        topics = self._joined_subscription = self._subscriptions.topics
        rack = self._consumer_config.client_rack
        return tuple(
            JoinGroupRequestProtocol(
                assignor.name,
                encode_subscription(
                    Subscription(
                        topics=topics,
                        user_data=assignor.subscription_user_data(topics),
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
        """Auto-commit if enabled, then give up what the rebalance protocol demands."""
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
        owned = self.owned_partitions
        if self._is_out_of_group():
            kind, given_up = CallbackKind.PARTITIONS_LOST, owned
            needed = bool(owned)
        elif self._protocol is RebalanceProtocol.EAGER:
            kind, given_up = CallbackKind.PARTITIONS_REVOKED, owned
            needed = True
        else:
            kind = CallbackKind.PARTITIONS_REVOKED
            given_up = tuple(tp for tp in owned if tp.topic not in self._subscriptions.topics)
            needed = bool(given_up)
        then = partial(self._join_prepare_ended, given_up)
        if needed:
            self._run_callback(kind, then, partitions=given_up)
        else:
            then(None, now_ms)

    def _is_out_of_group(self) -> bool:
        """Whether the generation or the member id was reset, so that it owns nothing any more."""
        generation_id, member_id, _ = self._generation
        return generation_id == NO_GENERATION_ID or member_id == UNKNOWN_MEMBER_ID

    def _join_prepare_ended(
        self, given_up: tuple[TopicPartition, ...], outcome: str | None, now_ms: int
    ) -> None:
        if outcome == WAKEUP:
            # QUIRK: a wake-up inside the callback skips everything that follows it: the
            # member joins at the next poll with the partitions it was about to give up.
            self._end_call(now_ms, WAKEUP)
            return
        self._drop(given_up)
        self._pending_revocation = False
        self._stop_leading()
        self._join_prepare_deadline_ms = FOREVER
        self._auto_commit_future = None
        if outcome is not None:
            self._end_call(now_ms, KAFKA)
        else:
            self._join_prepared(completed=True, now_ms=now_ms)

    # onJoinComplete

    def _on_join_complete(self, generation: Generation, assignment: bytes, now_ms: int) -> None:
        """Adopt an assignment: revoke first (cooperative), then assign."""
        if not self._is_leader:
            self._assignment_snapshot = None
        assignor = self._assignor(generation.protocol_name)
        if assignor is None or len(assignment) < _VERSION_SIZE:
            self._end_call(now_ms, ILLEGAL_STATE)
            return
        try:
            assigned = decode_assignment(assignment)
        except WireFormatError:
            self._end_call(now_ms, SCHEMA)
            return
        partitions = tuple(sorted(dict.fromkeys(assigned.partitions)))
        if not self._subscriptions.admits(partitions):
            self.request_rejoin("received assignment does not match the current subscription")
            self._join_completed(now_ms)
            return
        adoption = _Adoption(assignor, assigned, partitions, generation.generation_id)
        revoked = tuple(tp for tp in self._assigned if tp not in partitions)
        if self._protocol is RebalanceProtocol.COOPERATIVE and revoked:
            then = partial(self._revoked_in_join, adoption)
            self._run_callback(CallbackKind.PARTITIONS_REVOKED, then, partitions=revoked)
        else:
            self._adopt_assignment(adoption, None, now_ms)

    def _revoked_in_join(self, adoption: _Adoption, outcome: str | None, now_ms: int) -> None:
        if outcome == WAKEUP:
            self._end_call(now_ms, WAKEUP)
            return
        self.request_rejoin("need to revoke partitions and re-join")
        self._adopt_assignment(adoption, outcome, now_ms)

    def _adopt_assignment(self, adoption: _Adoption, error: str | None, now_ms: int) -> None:
        self._join_assigned_topics(adoption.partitions)
        adoption.assignor.on_assignment(adoption.assignment, adoption.generation_id)
        self._next_auto_commit_ms = now_ms + self._consumer_config.auto_commit_interval_ms
        added = tuple(tp for tp in adoption.partitions if tp not in self._assigned)
        self._adopt_partitions(adoption.partitions)
        then = partial(self._assigned_in_join, error)
        self._run_callback(CallbackKind.PARTITIONS_ASSIGNED, then, partitions=added)

    def _assigned_in_join(self, error: str | None, outcome: str | None, now_ms: int) -> None:
        """Throw what the first callback raised (`error`), now that both have run."""
        if outcome == WAKEUP:
            self._end_call(now_ms, WAKEUP)
        elif error is not None or outcome is not None:
            self._end_call(now_ms, KAFKA)
        else:
            self._join_completed(now_ms)

    # onLeavePrepare

    def _on_leave_prepare(self, now_ms: int) -> None:
        owned = self.owned_partitions
        if not owned or not self._subscriptions.is_automatic:
            self._leave_prepared(None, now_ms)
            return
        lost = self._is_out_of_group() or self._is_rebalancing()
        kind = CallbackKind.PARTITIONS_LOST if lost else CallbackKind.PARTITIONS_REVOKED
        self._run_callback(kind, self._left_partitions, partitions=owned)

    def _left_partitions(self, outcome: str | None, now_ms: int) -> None:
        if outcome != WAKEUP:
            self._drop(self.owned_partitions)
        self._leave_prepared(outcome, now_ms)

    # What the driver sees and tells.

    @property
    def protocol_type(self) -> str:
        """Protocol type of the group: `consumer`."""
        return "consumer"

    @property
    def member_id(self) -> str:
        """Member id given by the coordinator; empty before, and after a reset."""
        return self._generation.member_id

    def subscribe(self, topics: Sequence[str], now_ms: int) -> Effects:
        """Replace the subscription; the next poll rejoins if it changed.

        Without topics, acts as `unsubscribe`, which ends with `PollReturned`.

        Raises:
            InvariantViolation: the consumer has a pattern, or partitions assigned by hand.
        """
        if not topics:
            return self.unsubscribe(now_ms)
        self._subscribe_topics(topics)
        return self._settle(now_ms)

    def subscribe_pattern(self, pattern: str, now_ms: int) -> Effects:
        """Subscribe to the topics whose whole name matches, also to later ones.

        Raises:
            InvariantViolation: the consumer has topics, or partitions assigned by hand.
            ConfigError: the pattern is malformed.

        Source: kafka trunk, ClassicKafkaConsumer.subscribeInternal.
        """
        self._subscribe_pattern(pattern)
        return self._settle(now_ms)

    def assign(self, partitions: Sequence[TopicPartition], now_ms: int) -> Effects:
        """Assign partitions by hand, without the group; without partitions, act as `unsubscribe`.

        Raises:
            InvariantViolation: the consumer has a subscription.

        Source: kafka trunk, ClassicKafkaConsumer.assign, SubscriptionState.assignFromUser.
        """
        if not partitions:
            return self.unsubscribe(now_ms)
        self._maybe_auto_commit(now_ms)
        if self._subscriptions.assign(partitions):
            self._follow_topics(look=True)
        self._adopt_partitions(partitions)
        return self._settle(now_ms)

    def enforce_rebalance(self, now_ms: int, reason: str = "") -> Effects:
        """Rejoin at the next poll even without a reason to.

        Source: kafka trunk, ClassicKafkaConsumer.enforceRebalance.
        """
        self.request_rejoin(reason or "rebalance enforced by user")
        return self._settle(now_ms)

    def unsubscribe(self, now_ms: int) -> Effects:
        """Give up all partitions and leave; ends with `PollReturned`.

        Source: kafka trunk, ClassicKafkaConsumer.unsubscribe.
        """
        self._begin_call(AppCall.UNSUBSCRIBE, now_ms)
        self._on_leave_prepare(now_ms)
        return self._settle(now_ms)

    def commit(
        self, offsets: Mapping[TopicPartition, int], *, sync: bool, now_ms: int
    ) -> tuple[int, Effects]:
        """Commit the offsets; the commit ends with `CommitCompleted` and the returned token.

        A synchronous commit is a call, also of a callback, for at most `default.api.timeout.ms`.
        The completion of an asynchronous one is delivered inside the application's next call.
        """
        token, self._next_token = self._next_token, self._next_token + 1
        if sync:
            self._begin_call(AppCall.COMMIT, now_ms + self._consumer_config.default_api_timeout_ms)
            self._call_token = token
            fenced = self._invoke_completed_commits(now_ms)
            if fenced is None:
                self._commit_sync(offsets, now_ms)
            else:
                self._end_call(now_ms, fenced)
            return token, self._settle(now_ms)
        error = self._invoke_completed_commits(now_ms)
        if error is None and offsets:
            error = self._look_before_commit(now_ms)
        if error is None:
            self._commit_async(token, offsets, now_ms)
            self._poll_network(now_ms)
        else:
            self._out.append(CommitCompleted(token=token, error=error))
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
        if self._subscriptions.kind is SubscriptionType.NONE:
            self._end_call(now_ms, ILLEGAL_STATE)
        elif self._interruption is not None:
            self._raise_interruption(now_ms)
        else:
            self._block(Wait.NETWORK, now_ms, self._poll_loop)
        return self._settle(now_ms)

    def _is_steady(self, now_ms: int) -> bool:
        """Whether a poll would find nothing to do but wait."""
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
            and self._joined_subscription == self._subscriptions.topics
            and not self._unasked_resets
            and not self._completed_commits
            and not self._async_commit_fenced
            and self._interruption is None
            and not self._inbox
            and not self._net.failed
            and not self._net.is_unavailable(node_id, now_ms)
            and (now_ms < self._next_auto_commit_ms or not self._consumer_config.enable_auto_commit)
        )

    def fetch_completed(self, now_ms: int) -> Effects:
        """Return from a poll that only waits for records."""
        if self.awaits_records:
            self._end_call(now_ms)
        return self._settle(now_ms)

    def _poll_loop(self, now_ms: int) -> None:
        """Run one turn of the loop of ClassicKafkaConsumer.poll, up to where it must wait."""
        self._update_metadata_snapshot()
        error = self._invoke_completed_commits(now_ms)
        if error is None and self._subscriptions.is_automatic:
            error = self._poll_heartbeat(now_ms)
        if error is not None:
            self._end_call(now_ms, error)
        elif self._subscriptions.is_automatic:
            self._ensure_coordinator_ready(
                now_ms, deadline_ms=self._call_deadline_ms, then=self._poll_coordinator_ready
            )
        elif self._metadata.update_requested and not self._net.is_any_ready():
            # Without a group no coordinator lookup runs, which would pace reconnections.
            self._block_for_metadata(self._call_deadline_ms, self._poll_positions)
        else:
            self._poll_positions(now_ms)

    def _poll_coordinator_ready(self, ready: bool, now_ms: int) -> None:
        if not ready:
            self._poll_network_wait(now_ms)
        elif not self._rejoin_needed_or_pending():
            self._poll_positions(now_ms)
        elif self._subscriptions.has_pattern:
            self._poll_pattern(now_ms)
        else:
            self._poll_group(now_ms)

    def _poll_pattern(self, now_ms: int) -> None:
        """Match the pattern with a fresh view before joining, so that one creation is one join."""
        if self._metadata.may_update(now_ms):
            self._metadata.request_update(has_reason=True)
        if self._metadata.is_fresh(now_ms):
            self._poll_group(now_ms)
        else:
            self._block_for_metadata(self._call_deadline_ms, self._poll_pattern_refreshed)

    def _poll_pattern_refreshed(self, now_ms: int) -> None:
        if self._metadata.version > self._wait_version:
            self._poll_group(now_ms)
        else:
            self._poll_network_wait(now_ms)

    def _poll_group(self, now_ms: int) -> None:
        self._update_metadata_snapshot()
        # poll(Duration) does not wait for the join: it returns records meanwhile.
        self._ensure_active_group(now_ms, deadline_ms=now_ms, then=self._poll_group_active)

    def _poll_group_active(self, active: bool, now_ms: int) -> None:
        if active:
            self._poll_positions(now_ms)
        else:
            self._poll_network_wait(now_ms)

    def _poll_positions(self, now_ms: int) -> None:
        self._maybe_auto_commit(now_ms)
        self._update_positions(now_ms)

    def _poll_network_wait(self, now_ms: int) -> None:
        """Wait for anything to arrive, as pollForFetches does."""
        until_ms = self._call_deadline_ms
        if self._join_prepare_deadline_ms < FOREVER and self._heartbeat_running:
            # The loop runs for a heartbeat, and then sees that preparing took too long.
            until_ms = min(until_ms, self._heartbeat_due_ms)
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

    # Idle time, for drivers that skip it.

    def idle_phases(self, now_ms: int) -> IdlePhases | None:
        """Return the phases of a member that only heartbeats and polls; None for any other."""
        config, net = self._config, self._net
        polls = self._call is AppCall.POLL and self._wait is Wait.NETWORK
        rests = self._call is AppCall.NONE and self._wait is Wait.NOTHING
        look_ms = max(config.retry_backoff_ms, 1)
        on_grid = not (self._heartbeat_due_ms - self._thread_anchor_ms) % look_ms
        if (
            not (polls or rests)
            or not self.is_undisturbed(now_ms)
            or self._consumer_config.enable_auto_commit
            or self._is_off_grid
            or not on_grid
            or not net.is_idle()
            or not any(net.is_ready(node.node_id) for node in self._metadata.nodes)
            or self._metadata.max_age_ms < REFRESH_ROOM * config.retry_backoff_max_ms
        ):
            return None
        return IdlePhases(
            heartbeat_due_ms=self._heartbeat_due_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            look_ms=look_ms,
            metadata_due_ms=self._metadata.due_ms,
            metadata_max_age_ms=self._metadata.max_age_ms,
            refreshed_ms=self._metadata.refreshed_at_ms,
            backoff_draws=2 if config.retry_backoff_ms < config.retry_backoff_max_ms else 0,
            poll_ends_ms=self._call_deadline_ms if polls else None,
            longest_pause_ms=min(config.session_timeout_ms, config.rebalance_timeout_ms),
        )

    def is_undisturbed(self, now_ms: int) -> bool:
        """Whether it is in the state that `_is_steady` wants, also within a poll, and has beaten.

        The first heartbeat of a generation takes the thread's general way, which looks again soon.
        """
        node_id, beat = self._coordinator, self._beat
        return (
            self._heartbeat_running
            and beat is not None
            and beat.node_id == node_id
            and not self._heartbeat_attempts
            and self._state is MemberState.STABLE
            and not self._rejoin_needed_or_pending()
            and self._join_prepare_deadline_ms == FOREVER
            and self._joined_subscription == self._subscriptions.topics
            and not self._subscriptions.has_pattern
            and not self._unasked_resets
            and not self._initializing()
            and not self._async_commits
            and not self._completed_commits
            and not self._async_commit_fenced
            and self._interruption is None
            and self._outer_call is None
            and not self._inbox
            and not self._net.failed
            and self._metadata.is_fresh(now_ms)
            and node_id is not None
            and self._net.is_ready(node_id)
        )

    def bears(self, *, silence_ms: int, poll_ms: int) -> bool:
        """Whether it stays a member however late it is.

        Args:
            silence_ms: By how much a heartbeat is late at most.
            poll_ms: Longest time from one poll to the next.
        """
        config = self._config
        is_heard = config.heartbeat_interval_ms + silence_ms < config.session_timeout_ms
        return is_heard and poll_ms < config.rebalance_timeout_ms

    def skip_idle(self, skip: IdleSkip) -> None:
        """Go on between two polls as if the stretch since `idle_phases` had been lived through.

        The driver polls next, at an instant before any of the new deadlines, and has advanced the
        choices of all refreshes but the last one.
        """
        config = self._config
        self._call = AppCall.NONE
        self._wait = Wait.NOTHING
        self._resume = None
        self._activity = False
        self._thread_anchor_ms = skip.beat_ms
        self._heartbeat_due_ms = skip.heartbeat_due_ms
        self._session_deadline_ms = skip.answered_ms + config.session_timeout_ms
        self._poll_deadline_ms = skip.polled_ms + config.rebalance_timeout_ms
        self._net.skip(skip.beat_count + skip.refresh_count)
        if skip.refresh_count:
            self._metadata.skip(skip.refresh_count, skip.refreshed_ms, self._metadata_backoff_ms)
            self._metadata_snapshot_version = self._steady_version = self._metadata.version
        self._schedule_heartbeat_thread()
        self._arm()

    # unsubscribe and close

    def _leave_prepared(self, error: str | None, now_ms: int) -> None:
        if self._call is not AppCall.UNSUBSCRIBE:
            super()._leave_prepared(error, now_ms)
        elif error is not None:
            self._end_call(now_ms, WAKEUP if error == WAKEUP else KAFKA)
        else:
            self._maybe_leave_group("the consumer unsubscribed from all topics", now_ms)
            self._forget_subscription()
            self._end_call(now_ms)

    def _begin_close(self, now_ms: int) -> None:
        """Commit a last time if auto-commit is on, then leave (ConsumerCoordinator.close)."""
        fenced = self._invoke_completed_commits(now_ms)
        if self._consumer_config.enable_auto_commit and fenced is None:
            self._commit_sync(self.positions, now_ms)
        else:
            self._await_unsent_commits(now_ms)

    def _commit_sync_ended(self, error: str | None, now_ms: int) -> None:
        if self._call is AppCall.CLOSE:
            # The error of a last automatic commit is not thrown.
            self._await_unsent_commits(now_ms)
        else:
            super()._commit_sync_ended(error, now_ms)

    def _await_unsent_commits(self, now_ms: int) -> None:
        """Wait for asynchronous commits that still need a coordinator to be sent to."""
        if self._unsent_commits and now_ms < self._call_deadline_ms:
            self._ensure_coordinator_ready(
                now_ms, deadline_ms=self._call_deadline_ms, then=self._poll_unsent_commits
            )
        else:
            self._invoke_completed_commits(now_ms)
            self._close_membership(now_ms)

    def _poll_unsent_commits(self, ready: bool, now_ms: int) -> None:  # noqa: ARG002 - either way
        self._block(Wait.NETWORK, self._call_deadline_ms, self._await_unsent_commits)

    def _on_fatal_lookup(self, error: str, now_ms: int) -> None:
        if self._call is AppCall.CLOSE:
            self._close_membership(now_ms)
        else:
            super()._on_fatal_lookup(error, now_ms)
