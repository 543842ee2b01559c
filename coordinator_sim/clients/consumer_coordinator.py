"""A consumer's coordinator: subscription, assignment, callbacks, positions.

The driver polls it as an application polls KafkaConsumer. Records do not pass through here: the
driver reports positions with `advance_position`, and ends a poll early with `fetch_completed`.

Source: kafka trunk, clients/.../consumer/internals/ConsumerCoordinator.java and
ClassicKafkaConsumer.poll.
"""

from collections.abc import Mapping, Sequence

from coordinator_sim.assignors.contract import ConsumerAssignor
from coordinator_sim.clients.backoff import NO_JITTER, Jitter
from coordinator_sim.clients.config import CLASSIC, ConsumerConfig
from coordinator_sim.clients.consumer_leader import select_rebalance_protocol
from coordinator_sim.clients.consumer_rebalance import ConsumerRebalance
from coordinator_sim.clients.effects import CommitCompleted, Effects
from coordinator_sim.clients.exceptions import ILLEGAL_STATE, KAFKA, WAKEUP
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.clients.idle import REFRESH_ROOM, IdlePhases, IdleSkip
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.clients.port_core import AppCall, Wait
from coordinator_sim.clients.subscription_state import SubscriptionType
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node


class ConsumerCoordinator(ConsumerRebalance):
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

    __slots__ = ()

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
