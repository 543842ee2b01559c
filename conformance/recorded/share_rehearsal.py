"""Compares the port of Java's share consumer with a recording of the real one.

The application acknowledges by a rule, as that of `tools/ShareMember.java` does.
"""

from typing import Final

from coordinator_sim.clients.effects import CommitCompleted, Effect, Effects
from coordinator_sim.clients.share_consumer import ShareConsumer
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.kafka.share_types import AcknowledgeType
from coordinator_sim_conformance.recorded.recording import Recording
from coordinator_sim_conformance.recorded.rehearsal import TOLERANCE_MS, Rehearsal

_TYPES = {
    "A": AcknowledgeType.ACCEPT,
    "L": AcknowledgeType.RELEASE,
    "J": AcknowledgeType.REJECT,
    "N": AcknowledgeType.RENEW,
}
_POLL_MS: Final = 1_000


class ShareRehearsal(Rehearsal):
    """Plays one recording with a share consumer.

    Args:
        recording: Behaviour of the real client.
        port: Port to compare, not started yet.
        types: A letter for each offset in turn: A accepts, L releases, J rejects, N renews once
            and then accepts. Empty where the application acknowledges nothing by itself.
        commit: How it commits after each poll with records: `none`, `sync` or `async`.
        tolerance_ms: Allowed difference of instants.
    """

    def __init__(
        self,
        recording: Recording,
        port: ShareConsumer,
        *,
        types: str = "",
        commit: str = "none",
        tolerance_ms: int = TOLERANCE_MS,
    ) -> None:
        super().__init__(recording, port, tolerance_ms=tolerance_ms, poll_ms=_POLL_MS)
        self._share_port = port
        self._types = types
        self._commits = commit
        self._renewed: set[tuple[TopicPartition, int]] = set()

    def _poll_again(self, now_ms: int) -> Effects:
        """Acknowledge what the poll returned, commit it, and poll again."""
        port, records = self._share_port, self._share_port.records
        for partition, offsets in records.items() if self._types else ():
            for offset in offsets:
                port.acknowledge(partition, offset, self._type_of(partition, offset))
        if records and self._commits == "sync" and not self._is_busy:
            return port.commit_sync(now_ms)[1]
        effects: Effects = ()
        if records and self._commits == "async":
            effects = port.commit_async(now_ms)
        return effects + super()._poll_again(now_ms)

    def _type_of(self, partition: TopicPartition, offset: int) -> AcknowledgeType:
        kind = _TYPES[self._types[offset % len(self._types)]]
        if kind is AcknowledgeType.RENEW and (partition, offset) in self._renewed:
            return AcknowledgeType.ACCEPT
        self._renewed.add((partition, offset))
        return kind

    def _carry_out_one(self, effect: Effect) -> None:
        super()._carry_out_one(effect)
        if isinstance(effect, CommitCompleted):
            self._at(self._now_ms, super()._poll_again)
