"""Bench of models of clients: the bench of ports, with an application that polls again and again.

Answers that no other port is given stand here, too.
"""

from typing import TypeVar

from msgspec import Struct

from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.client_traits import ClientTraits
from coordinator_sim.clients.consumer_coordinator import ConsumerCoordinator
from coordinator_sim.clients.contract import ClientPort
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.join_group import JoinGroupResponseMember
from coordinator_sim.messages.requests import Request
from coordinator_sim_conformance.client_cases.bench import (
    BROKER,
    MEMBER,
    Bench,
    ConsumerBench,
    PortBench,
)

P0 = TopicPartition("t", 0)
P1 = TopicPartition("t", 1)
POLL_MS = 100


P = TypeVar("P", bound=ClientPort)


class PolledBench(PortBench[P]):
    """A client whose application polls again and again."""

    def poll(self, timeout_ms: int = POLL_MS) -> None:
        """Begin a short poll."""
        super().poll(timeout_ms)

    def run(self, until_ms: int, *, polling: bool = True) -> None:
        """Let time pass; a poll that ends is followed by the next one."""
        while True:
            deadline_ms = self.port.next_deadline_ms()
            if deadline_ms is None or deadline_ms > until_ms:
                break
            polls = len(self.returned)
            super().run(max(self.now_ms, deadline_ms))
            if polling and len(self.returned) > polls:
                self.poll()
        self.now_ms = until_ms


class ModelBench(PolledBench[ConsumerCoordinator], ConsumerBench):
    """A consumer whose group is served independently of its polls.

    Attributes:
        refuses: Whether brokers refuse connections.
    """

    refuses = False

    def connect(self, node_id: int) -> None:
        """Open the connection, or refuse it."""
        if self.refuses:
            self.do(self.port.on_disconnected(node_id, self.now_ms))
        else:
            super().connect(node_id)

    @property
    def pending(self) -> list[type[Request]]:
        """Kinds of the unanswered requests, oldest first."""
        return [type(send.request) for send in self.unanswered]

    @property
    def commits(self) -> dict[int, str | None]:
        """Errors of the commits that have ended, by their token."""
        return {each.token: each.error for each in self.committed}


class Model(Struct):
    """Benches of one client's model, as a consumer of a topic of two partitions."""

    port: type[ConsumerCoordinator]
    traits: ClientTraits

    def made(self, assignor: str = "range", **settings: str) -> ModelBench:
        """A consumer that has not polled yet; franz-go's backoffs are without jitter."""
        config = {key.replace("_", "."): value for key, value in settings.items()}
        port = self.port(
            self.traits.config_from(config),
            client_id="c",
            group_id="g",
            topics=("t",),
            assignors=[make_consumer_assignor(assignor)],
            bootstrap=(BROKER,),
        )
        return ModelBench(Bench(), port, topics={"t": 2})

    def polled(self, assignor: str = "range", **settings: str) -> ModelBench:
        """A consumer in its first poll."""
        bench = self.made(assignor, **settings)
        bench.poll()
        return bench

    def settled(self, assignor: str = "range", **settings: str) -> ModelBench:
        """A consumer that has joined as a follower and owns both partitions."""
        bench = self.made(assignor, **settings)
        bench.settle(P0, P1, protocol_name=assignor)
        return bench


def members(*metadata: bytes) -> tuple[JoinGroupResponseMember, ...]:
    """Members as a leader sees them; it is the first one itself."""
    ids = (MEMBER, "other", "third")
    return tuple(JoinGroupResponseMember(ids[n], None, blob) for n, blob in enumerate(metadata))
