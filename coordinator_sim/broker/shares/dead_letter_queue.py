"""Writes dead letters to the topics that share groups name for them, from 4.4 on.

A broker does it for the share partitions that it leads: it checks the topic, has it created where
that is allowed, and produces to its leader. Whatever fails is tried again or given up; the records
are archived in any case.

DEVIATION: each run of consecutive records is a batch of its own. Kafka merges the runs that wait
for one leader; their records are the same.

DEVIATION: a leader that does not answer is known as one that is away. Kafka waits for its answer.

Source: kafka 4.4.0, server/.../share/dlq/DefaultShareGroupDLQManager and ShareGroupDLQStateManager,
core/.../ShareCoordinatorMetadataCacheHelperImpl; KIP-1191.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from msgspec import Struct

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.configs.configs import NO_DEAD_LETTERS
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import GROUP_RESOURCE, NO_LEADER
from coordinator_sim.broker.scheduler import NO_TOKEN
from coordinator_sim.broker.security.access import BROKER_PRINCIPAL
from coordinator_sim.broker.share_coordinator.persister import MAX_ATTEMPTS, backoff_ms
from coordinator_sim.broker.shares.dead_letter_records import (
    Originals,
    OriginalsReader,
    dead_letter_batch,
)
from coordinator_sim.broker.shares.dead_letters import DeadLetters
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from coordinator_sim.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_LEVEL: Final = 2
"""Level of `share.version` from which groups have queues. Source: ShareVersion.SV_2."""
_TOPIC_NAME: Final = "errors.deadletterqueue.topic.name"
_COPIES: Final = "errors.deadletterqueue.copy.record.enable"
_PREFIX: Final = "errors.deadletterqueue.topic.name.prefix"
_CREATES: Final = "errors.deadletterqueue.auto.create.topics.enable"
_IS_QUEUE: Final = "errors.deadletterqueue.group.enable"
_MANAGER: Final = "group.share.dlq.manager.class.name"
_DEFAULT: Final = -1
_ALL_IN_SYNC: Final = -1
_PRODUCE_TIMEOUT_MS: Final = 30_000
_TURN_MS: Final = 1
"""Between two letters: a client may reject thousands at once, and others are to be answered."""
_CREATED_AGAIN: Final = frozenset(
    {ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.THROTTLING_QUOTA_EXCEEDED}
)
"""Errors of CreateTopics after which it is tried again."""
_PRODUCED_AGAIN: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NETWORK_EXCEPTION})
"""Errors of Produce after which it is tried again."""


class _Sending(Struct, eq=False):
    """Dead letters on their way.

    Args:
        letters: Which records.
        then: Called when that has ended.
        next_offset: The first record that is not written yet.
        originals: What is copied of the next ones; None until it is read.
        creation_count: Attempts to create the topic, as long as they fail.
        produce_count: Attempts to produce, as long as they fail.
    """

    letters: DeadLetters
    then: Callable[[Instants], None]
    next_offset: int
    originals: Originals | None = None
    creation_count: int = 0
    produce_count: int = 0


class ShareGroupDeadLetters:
    """The queue of one broker's share partitions; implements `DeadLetterQueue`.

    Args:
        broker_id: The broker.
        cluster: Where topics are created, and records read and written.
        draw: Gives a number from 0 up to, and without, 1.
    """

    def __init__(
        self,
        broker_id: int,
        cluster: ClusterParts,
        draw: Callable[[], float],
    ) -> None:
        self._broker_id = broker_id
        self._cluster = cluster
        self._draw = draw
        self._is_stopped = False
        self._ready: deque[_Sending] = deque()

    def is_enabled(self, group_id: str) -> bool:
        """Whether the group names a topic, and the cluster has the feature."""
        level = self._cluster.hosted.image.features.get("share.version", 0)
        return level >= _LEVEL and bool(self._topic_of(group_id))

    def stop(self) -> None:
        """The broker's process has ended: nothing is written any more."""
        self._is_stopped = True

    def enqueue(
        self, letters: DeadLetters, then: Callable[[Instants], None], now: Instants
    ) -> None:
        """Write records to the group's topic; `then` is called when that has ended, well or not.

        Source: DefaultShareGroupDLQManager.enqueue, ShareGroupDLQStateManager.dlq.
        """
        if self._cluster.configs.broker_value(_MANAGER, self._broker_id) in NO_DEAD_LETTERS:
            then(now)
            return
        refusal = self._refusal(letters.key.group_id)
        sending = _Sending(letters, then, letters.first_offset)
        if refusal is not None:
            self._failed(sending, refusal)
            return
        self._soon(sending)

    # -- the topic -------------------------------------------------------------------------

    def _topic_of(self, group_id: str) -> str:
        return str(self._cluster.configs.group_value(group_id, _TOPIC_NAME))

    def _refusal(self, group_id: str) -> str | None:
        """Why nothing can be written for a group; None to go on.

        Source: ProduceRequestHandler.validateDlqTopic.
        """
        image, configs = self._cluster.hosted.image, self._cluster.configs
        topic, prefix = (
            self._topic_of(group_id),
            str(configs.broker_value(_PREFIX, self._broker_id)),
        )
        if not image.configs_of(GROUP_RESOURCE, group_id):
            return f"Configured DLQ topic name in share group: {group_id} is empty."
        if topic.startswith("__"):
            return (
                f"Configured DLQ topic name in share group: {group_id} cannot start with __, "
                f"topic: {topic}."
            )
        if topic in image.topics and not configs.topic_value(topic, _IS_QUEUE):
            return (
                "DLQ is not enabled on configured DLQ topic for share group: "
                f"{group_id}, topic: {topic}."
            )
        if topic not in image.topics and not configs.broker_value(_CREATES, self._broker_id):
            return (
                "DLQ topic does not exist and auto create is disabled on cluster for share group: "
                f"{group_id}, topic: {topic}."
            )
        if not topic.startswith(prefix):
            return (
                "Configured DLQ topic name does not comply with the DLQ topic prefix in share "
                f"group: {group_id}, topic: {topic}, prefix: {prefix}."
            )
        return None

    def _create(self, sending: _Sending, topic: str) -> None:
        """Have the topic created. Source: ProduceRequestHandler.createTopicBuilder."""
        configs = (
            CreatableTopicConfig(_IS_QUEUE, "true"),
            CreatableTopicConfig("message.timestamp.type", "CreateTime"),
        )
        creatable = CreatableTopic(topic, _DEFAULT, _DEFAULT, configs=configs)
        request = CreateTopicsRequest(topics=(creatable,), timeout_ms=_PRODUCE_TIMEOUT_MS)
        self._send(self._broker_id, request, partial(self._created, sending))

    def _created(self, sending: _Sending, response: Struct | None) -> None:
        """Source: ProduceRequestHandler.handleCreateTopicsResponse."""
        (result,) = cast("CreateTopicsResponse", response).topics
        sending.creation_count += 1
        if result.error_code is ErrorCode.NONE and self._leader(sending, result.name) is not None:
            sending.creation_count = 0
            self._attempt(sending, self._cluster.latest)
        elif result.error_code is not ErrorCode.NONE and result.error_code not in _CREATED_AGAIN:
            text = result.error_message or error_message(result.error_code)
            self._failed(sending, f"Unable to create DLQ topic {result.name}: {text}")
        elif sending.creation_count < MAX_ATTEMPTS:
            self._again(sending, sending.creation_count)
        else:
            self._failed(sending, "Exhausted max retries to create DLQ topic without success.")

    # -- the records -----------------------------------------------------------------------

    def _originals(self, sending: _Sending) -> Originals:
        """Keys and values to copy of the next records; none unless the group asks for copies.

        Source: ProduceRequestHandler.resolveRound.
        """
        letters, configs = sending.letters, self._cluster.configs
        nothing = Originals({}, letters.last_offset)
        if not configs.group_value(letters.key.group_id, _COPIES):
            return nothing
        place = letters.topic, letters.key.partition
        hosted = self._cluster.hosted
        log = hosted.local_log(self._broker_id, place)
        if isinstance(log, ErrorCode):
            return nothing
        if hosted.image.topics[letters.topic].topic_id != letters.key.topic_id:
            return nothing  # The topic is another one of the same name.
        max_bytes = self._max_bytes(self._topic_of(letters.key.group_id))
        reader = OriginalsReader(sending.next_offset, letters.last_offset, max_bytes)
        found = hosted.attempt(place, partial(reader.read, log))
        return nothing if isinstance(found, ErrorCode) else found

    def _max_bytes(self, topic: str) -> int:
        return int(str(self._cluster.configs.topic_value(topic, "max.message.bytes")))

    def _leader(self, sending: _Sending, topic: str) -> tuple[int, int] | None:
        """The topic's partition to write to, and its leader; None without one.

        Source: ProduceRequestHandler.populateDLQTopicData.
        """
        state = self._cluster.hosted.image.topics.get(topic)
        if state is None:
            return None
        partition = sending.letters.key.partition % len(state.partitions)
        leader_id = state.partitions[partition].leader_id
        return None if leader_id == NO_LEADER else (partition, leader_id)

    def _attempt(self, sending: _Sending, now: Instants) -> None:
        """Check the topic, create it where it lacks a leader, and produce.

        QUIRK: a topic without a leader is created anew, which fails until it has one.

        Source: SendThread.enqueue, SendThread.generateRequests.
        """
        if self._is_stopped:
            return
        group_id = sending.letters.key.group_id
        refusal = self._refusal(group_id)
        if refusal is not None:
            self._failed(sending, refusal)
            return
        if sending.originals is None:
            sending.originals = self._originals(sending)
        topic = self._topic_of(group_id)
        leader = self._leader(sending, topic)
        if leader is None:
            self._create(sending, topic)
            return
        partition, leader_id = leader
        if not self._cluster.brokers.is_running(leader_id):
            self._not_produced(sending, ErrorCode.NETWORK_EXCEPTION, None)
            return
        data, last_offset = dead_letter_batch(
            sending.letters,
            sending.next_offset,
            sending.originals,
            now.group_ms,
            self._max_bytes(topic),
        )
        topic_id = self._cluster.hosted.image.topics[topic].topic_id
        produced = TopicProduceData(topic, topic_id, (PartitionProduceData(partition, data),))
        request = ProduceRequest(None, _ALL_IN_SYNC, _PRODUCE_TIMEOUT_MS, (produced,))
        self._send(leader_id, request, partial(self._produced, sending, last_offset))

    def _produced(self, sending: _Sending, last_offset: int, response: Struct | None) -> None:
        """Source: ProduceRequestHandler.handleProduceResponse."""
        (topic,) = cast("ProduceResponse", response).responses
        (result,) = topic.partition_responses
        if result.error_code is not ErrorCode.NONE:
            self._not_produced(sending, result.error_code, result.error_message)
            return
        sending.produce_count = 0
        if last_offset == sending.letters.last_offset:
            sending.then(self._cluster.latest)
            return
        sending.next_offset = last_offset + 1
        sending.originals = None
        self._soon(sending)

    def _not_produced(self, sending: _Sending, error: ErrorCode, message: str | None) -> None:
        sending.produce_count += 1
        if error not in _PRODUCED_AGAIN:
            self._failed(sending, message or error_message(error))
        elif sending.produce_count < MAX_ATTEMPTS:
            self._again(sending, sending.produce_count)
        else:
            text = "Exhausted max retries to produce to DLQ topic without success."
            self._failed(sending, text)

    # -- how -------------------------------------------------------------------------------

    def _send(
        self,
        broker_id: int,
        request: CreateTopicsRequest | ProduceRequest,
        answered: Callable[[Struct | None], None],
    ) -> None:
        """Send a request with the rights of a broker."""
        context = RequestContext(
            token=NO_TOKEN,
            api_version=0,
            client_id=str(self._broker_id),
            principal=BROKER_PRINCIPAL,
        )
        self._cluster.send(broker_id, request, context, answered)

    def _again(self, sending: _Sending, attempts: int) -> None:
        at_ms = self._cluster.latest.wall_ms + backoff_ms(attempts, self._draw())
        self._cluster.scheduler.at_wall_ms(at_ms, lambda _now: self._soon(sending))

    def _soon(self, sending: _Sending) -> None:
        """Attempt it after all others that are ready."""
        self._ready.append(sending)
        if len(self._ready) == 1:
            self._cluster.scheduler.at_wall_ms(self._cluster.latest.wall_ms, self._attempt_first)

    def _attempt_first(self, now: Instants) -> None:
        """Attempt the one that has been ready longest, and schedule the next one."""
        sending = self._ready[0]
        try:
            self._attempt(sending, now)
        finally:
            self._ready.popleft()
            if self._ready:
                at_ms = now.wall_ms + _TURN_MS
                self._cluster.scheduler.at_wall_ms(at_ms, self._attempt_first)

    def _failed(self, sending: _Sending, why: str) -> None:
        """Give up. Source: SharePartition.initiateDLQAndArchive, which logs it."""
        letters = sending.letters
        self._cluster.hosted.trouble(
            f"share group {letters.key.group_id}: offsets {sending.next_offset} to "
            f"{letters.last_offset} of {letters.topic}-{letters.key.partition} are archived "
            f"without their dead-letter queue: {why}"
        )
        sending.then(self._cluster.latest)
