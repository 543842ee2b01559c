"""Our own server as a target: requests over TCP, group time moved by hand."""

import asyncio
import logging
import threading
from collections.abc import Callable
from itertools import count
from typing import Final, TypeVar

from msgspec.structs import replace

import coordinator_sim
from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.configs.setting_types import settings_of
from coordinator_sim.broker.connection import MAX_REQUEST_BYTES
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import NO_LEADER
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.properties import configured
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, partition_for
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.catalogue import API_NAMES, api_named
from coordinator_sim.messages.codec.json_form import uuid_text
from coordinator_sim.server.kafka_server import KafkaServer, Listen
from coordinator_sim.server.timekeeper import VirtualClock
from coordinator_sim_conformance.requirements import family_of
from coordinator_sim_conformance.targets.asked import ADDS_PARTITION
from coordinator_sim_conformance.targets.failing_assignor import register_failing_assignor
from coordinator_sim_conformance.targets.reach import Reach
from coordinator_sim_conformance.targets.simulator import next_deadline_ms
from coordinator_sim_conformance.targets.target import (
    Answer,
    Call,
    Capability,
    GroupView,
    Json,
    Outcome,
    Unsupported,
    World,
    has_groups,
    view_of,
)
from coordinator_sim_conformance.wire.links import Address, Link, Links
from coordinator_sim_conformance.wire.security import Security

START_MS: Final = 1_000_000
_HOST: Final = "127.0.0.1"
_LISTING: Final = -1
"""Call id of the target's own requests, whose answers no case sees."""
_OFFERED: Final = frozenset(
    {
        Capability.CLOCK,
        Capability.TOPICS,
        Capability.CLUSTER,
        Capability.CONSUMER_GROUPS,
        Capability.SHARE_GROUPS,
        Capability.STREAMS_GROUPS,
        Capability.RECORDS,
        Capability.FAILING_ASSIGNOR,
    }
)

_SHARE_STATE_PARTITIONS: Final = 2
"""No case names a partition of the share state topic, and each costs every case its creation."""
_UNVERIFIED: Final = {"transaction.partition.verification.enable": "false"}
"""Settings for cases that commit in transactions unknown to the transaction coordinator."""

T = TypeVar("T")


class ServedTarget:
    """One server of ours in a thread, reached over TCP; a new cluster for each case."""

    name = "serve"
    delay_ms = 0

    def __init__(self) -> None:
        # What its server logs of connections that cases spoil is shown to who asks for logs.
        logging.getLogger(coordinator_sim.__name__).addHandler(logging.NullHandler())
        self.world = World(profile="", settings={})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._wall_ms = START_MS
        self._clock = VirtualClock(lambda: self._wall_ms)
        self._server: KafkaServer | None = None
        self._links: Links | None = None
        self._address: Address = (_HOST, 0)

    def close(self) -> None:
        """End the server and its thread."""
        self._end()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def offers(self, capability: Capability) -> bool:
        """Whether the operations of that capability work."""
        if self.world.profile and not has_groups(capability, self.world.profile):
            return False
        return capability in _OFFERED

    def newest(self, api: str, most: int) -> int:  # noqa: ARG002 - an interface of all targets
        """Return the bound: a script's versions are those of the profile."""
        return most

    def start(self, world: World) -> None:
        """Create another cluster, whose broker leads every offsets partition."""
        self._end()
        self.world = world
        register_failing_assignor(world)
        self._wall_ms = START_MS
        self._clock = VirtualClock(lambda: self._wall_ms)
        properties = {**world.settings, "offsets.topic.num.partitions": str(world.partitions)}
        profile = replace(profile_named(world.profile), **dict.fromkeys(world.switches, True))
        settings = ClusterSettings(
            profile=profile,
            coordinator=configured(CoordinatorConfig(), properties),
            share_state_partitions=_SHARE_STATE_PARTITIONS,
            given={
                name: value
                for name, value in _UNVERIFIED.items()
                if name in settings_of(profile.name, "broker")
            },
        )
        server = KafkaServer(settings, self._clock)
        self._server = server
        listens = [Listen(broker_id=1, host=_HOST, port=0)]
        asyncio.run_coroutine_threadsafe(server.start(listens), self._loop).result()
        self._do(self._create_topics)
        endpoint = server.endpoints[1, listens[0].name]
        self._address = (endpoint.host, endpoint.port)
        self._links = Links(lambda: Link(self._address, Security()))

    def call(self, call: Call) -> Outcome:
        """Send a request; return the answers given once the server is idle again.

        Raises:
            Unsupported: the server does not offer the version.
        """
        api = api_named(call.api)
        span = self._cluster.versions.ranges.get(api)
        if span is None or not span[0] <= call.version <= span[1]:
            raise Unsupported(f"{self.name} does not offer version {call.version} of {call.api}")
        if call.api == "TxnOffsetCommit" and call.version >= ADDS_PARTITION:
            raise Unsupported(f"version {call.version} of {call.api} wants a real transaction")
        self._sockets.send(call)
        return self._settled()

    def advance(self, ms: int, *, early: bool = False) -> Outcome:
        """Let time pass on both clocks, firing each timer at its own instant."""
        del early  # Time is moved by hand, to the millisecond.
        target_ms = self._clock.now().group_ms + ms
        answers: list[Answer] = []
        while (deadline_ms := self._do(next_deadline_ms)) is not None and deadline_ms <= target_ms:
            self._move_to(deadline_ms)
            self._do(lambda cluster: cluster.expire(self._clock.now()))
            answers += self._settled().answers
        self._move_to(target_ms)
        return Outcome(tuple(answers))

    def late(self, _since_s: float) -> None:
        """Nothing is late: time is moved by hand."""

    def view(self, group_id: str) -> GroupView | None:
        """Return the group as DescribeGroups shows it."""
        version = 0 if family_of(self.world.profile) == "L" else 5
        data: Json = {"groups": [group_id]}
        if version:
            data["includeAuthorizedOperations"] = False
        call = Call(call_id=_LISTING, api="DescribeGroups", version=version, data=data)
        return view_of(self.call(call).answers[0].data["groups"][0])

    def operate(self, operation: Json) -> Outcome:
        """Create, grow or delete topics, or leave the cluster without a leader.

        Raises:
            Unsupported: any other operation.
        """
        match operation:
            case {"op": "topics", "set": topics}:
                for topic in topics:
                    self._create(topic["name"], topic["partitions"])
            case {"op": "topics", "remove": names}:
                for name in names:
                    self._delete(name)
            case {"op": "removeOffsetsTopic"}:
                self._delete(OFFSETS_TOPIC)
            case {"op": "removeLeader", "group": group}:
                place = self.partition_of(group)
                self._do(
                    lambda cluster: cluster.leadership.elect(
                        OFFSETS_TOPIC, place, NO_LEADER, self._now()
                    )
                )
            case _:
                raise Unsupported(f"{self.name}: no op {operation['op']}")
        return self._settled()

    def topic_ids(self) -> dict[str, str]:
        """Return the id of every topic."""
        topics = self._do(lambda cluster: dict(cluster.image.topics))
        return {name: uuid_text(topic.topic_id) for name, topic in topics.items()}

    def partition_of(self, group_id: str) -> int:
        """Return the offsets partition of a group."""
        return partition_for(group_id, self.world.partitions)

    def reach(self) -> Reach:
        """Return how its broker is reached with frames of one's own."""
        offered, numbers = self._cluster.versions.ranges, count(1)
        return Reach(
            versions={name: offered[api] for api, name in API_NAMES.items() if api in offered},
            group=lambda: f"g{next(numbers)}",
            opened=lambda: Link(self._address, Security()),
            topic=lambda: next(iter(self.world.topics or {})),
            largest=MAX_REQUEST_BYTES,
        )

    # -- inside ----------------------------------------------------------------------------

    @property
    def _cluster(self) -> Cluster:
        if self._server is None:
            raise Unsupported("no world yet")
        return self._server.cluster

    @property
    def _sockets(self) -> Links:
        if self._links is None:
            raise Unsupported("no world yet")
        return self._links

    def _move_to(self, now_ms: int) -> None:
        self._clock.move_to(now_ms)
        self._wall_ms = max(self._wall_ms, now_ms)

    def _now(self) -> Instants:
        return self._clock.now()

    def _do(self, verb: Callable[[Cluster], T]) -> T:
        """Run a function on the server's own thread, and update its sockets."""

        async def done() -> T:
            result = verb(self._cluster)
            self._cluster.go_on(self._clock.now())
            return result

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result()

    def _create(self, topic: str, partitions: int) -> None:
        """Create a topic, or add partitions to an existing one."""

        def create(cluster: Cluster) -> None:
            known = cluster.image.topics.get(topic)
            if known is None:
                cluster.topics.create_spread(topic, partitions, self._now())
            else:
                count = len(known.partitions)
                added = cluster.topics.spread(partitions - count, 1, first=count)
                cluster.topics.add_partitions(topic, added, self._now())

        self._do(create)

    def _delete(self, topic: str) -> None:
        self._do(lambda cluster: cluster.topics.delete(topic, self._now()))

    def _create_topics(self, cluster: Cluster) -> None:
        now = self._clock.now()
        for name, partitions in (self.world.topics or {}).items():
            cluster.topics.create_spread(name, partitions, now)
        cluster.topics.create_asked_for(OFFSETS_TOPIC, now)
        if has_groups(Capability.SHARE_GROUPS, self.world.profile):
            # Made at the first lookup otherwise, which tries again a second later by the wall.
            cluster.topics.create_asked_for(SHARE_STATE_TOPIC, now)

    def _settled(self) -> Outcome:
        self._sockets.settle()
        return Outcome(tuple(self._sockets.collect(self._clock.now().group_ms)))

    def _end(self) -> None:
        if self._links is not None:
            self._links.close()
            self._links = None
        if self._server is not None:
            asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result()
            self._server = None
