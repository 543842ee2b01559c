"""The story: a group under load goes over to the consumer protocol member by member, and back.

After each step, once every partition has one owner and every member a part, an administrator looks
at the group. What the administrator saw can be compared between brokers: lives of members are not
told, and epochs count from that of the conversion, for how many generations a classic group needs
to start is a matter of time.
"""

import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from threading import Event as Flag
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.real_kafka.upgrade.account import Account, account_of
from coordinator_sim_conformance.real_kafka.upgrade.hosts import PATIENCE_S, Host

TOPICS: Final = {"orders": 6, "bills": 6}
"""Topics of a group, which are named after it, with their numbers of partitions: two members, or
three, have equal shares by every assignor."""

_PAUSE_S: Final = 0.005
"""Between two records of the producer."""
_LOOK_S: Final = 0.3
"""Between two looks at a group, which must be the same before it counts as settled."""
_ASSIGNORS: Final = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
_LIFE: Final = re.compile(r"(?<=\b[jr]\d)\.\d+(?=:)")
_EPOCH: Final = re.compile(r"(?<=epoch=)\d+|(?<=target=)\d+|(?<=:)\d+(?=:(?:new|old):)")
_AUTO_COMMIT: Final = {"enable.auto.commit": "true", "auto.commit.interval.ms": "400"}
_OWN_COMMIT: Final = {"enable.auto.commit": "false"}


class Variant(Struct, frozen=True, kw_only=True):
    """A group, and how its members behave.

    Args:
        group: Its id.
        members: Their names; `j...` are Java's, `r...` librdkafka's.
        assignor: Of the classic protocol.
        commits: `auto`, or `own`: every 400 ms and when partitions are revoked.
        killed: Member whose process is killed while the group is mixed, instead of a clean end.
        session_ms: Session timeout of classic members: short where one of them dies.
        is_static: Whether members have their names as instance ids; nobody takes their part then
            while they restart.
    """

    group: str
    members: tuple[str, ...]
    assignor: str
    commits: str
    killed: str | None = None
    session_ms: int = 8_000
    is_static: bool = False


VARIANTS: Final = (
    Variant(
        group="java",
        members=("j0", "j1", "j2"),
        assignor="cooperative-sticky",
        commits="own",
    ),
    Variant(group="mixed", members=("j0", "j1", "r0"), assignor="range", commits="auto"),
    Variant(group="auto", members=("j0", "j1"), assignor="cooperative-sticky", commits="auto"),
    Variant(
        group="static",
        members=("j0", "j1", "r0"),
        assignor="range",
        commits="own",
        is_static=True,
    ),
    Variant(group="killed", members=("j0", "r0"), assignor="range", commits="own", killed="r0"),
)


class Outcome(Struct, frozen=True):
    """What a run left.

    Args:
        steps: What the administrator saw, step by step.
        account: Of the records.
        behind: Partitions whose last commit is not their end.
        troubles: What members complained of.
    """

    steps: list[str]
    account: Account
    behind: list[str]
    troubles: list[str]

    def faults(self) -> list[str]:
        """Everything that is against the rules; empty of a right run."""
        return [*self.account.faults(), *self.behind, *self.troubles]


class Load:
    """A producer that writes numbered records all the time, to be used as a context.

    Attributes:
        acknowledged: Values of the records that are written.
        ends: Of each partition, the offset behind its last record.
    """

    def __init__(self, bootstrap: str, topics: Mapping[str, int]) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 2,
                "enable.idempotence": True,
                "log_level": 0,
            }
        )
        self._places = [(topic, index) for topic, count in topics.items() for index in range(count)]
        self._stopped = Flag()
        self._thread = Thread(target=self._run, daemon=True)
        self.acknowledged: list[str] = []
        self.ends: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Begin to write."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, if that was not done."""
        self.stop()

    def stop(self) -> None:
        """Stop writing; what was written is acknowledged then."""
        self._stopped.set()
        self._thread.join(PATIENCE_S)
        self._producer.flush(PATIENCE_S)

    def _run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            topic, partition = self._places[number % len(self._places)]
            self._producer.produce(
                topic, str(number), partition=partition, on_delivery=self._delivered
            )
            self._producer.poll(0)
            number += 1
            time.sleep(_PAUSE_S)

    def _delivered(self, error: object, message: Message) -> None:
        offset, value = message.offset(), message.value()
        if error is None and offset is not None and value is not None:
            self.acknowledged.append(value.decode())
            self.ends[f"{message.topic()}-{message.partition()}"] = offset + 1


class Upgrade:
    """One group of members, restarted one by one; to be used as a context.

    Args:
        bootstrap: Address of the brokers.
        variant: Which group.
        java: Process for Java's members, which also asks as an administrator.
        tell: Told each step as it is over.
        disturb: Called once, when the group has members of both protocols.
    """

    def __init__(
        self,
        bootstrap: str,
        variant: Variant,
        java: Host,
        tell: Callable[[str], None],
        disturb: Callable[[], None] | None = None,
    ) -> None:
        self._bootstrap = bootstrap
        self._variant = variant
        self._java = java
        self._tell = tell
        self._disturb = disturb
        self._topics = {f"{variant.group}-{name}": count for name, count in TOPICS.items()}
        self._places = {
            f"{topic}-{index}" for topic, count in self._topics.items() for index in range(count)
        }
        self._lives: dict[str, int] = {}
        self._running: dict[str, tuple[str, Host]] = {}
        self._hosts = [java]
        self._before = len(java.events)
        self._stack = ExitStack()
        self._steps: list[str] = []
        self._first_epoch: int | None = None

    def __enter__(self) -> Self:
        """Create the topics."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 4})
        wanted = [NewTopic(topic, count, 1) for topic, count in self._topics.items()]
        for future in admin.create_topics(wanted).values():
            future.result(PATIENCE_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes of the members that are not Java's."""
        self._stack.close()

    def play(self) -> Outcome:
        """Play the story to its end.

        Raises:
            DataError: a step did not come to its end.
        """
        names = self._variant.members
        with Load(self._bootstrap, self._topics) as load:
            for name in names:
                self._start(name, "classic")
            self._settle("all are classic")
            for name in names:
                self._restart(name, "consumer")
                if self._disturb is not None and name == names[0]:
                    self._disturb()
                    self._settle("disturbed")
            for name in names if self._variant.killed is None else ():
                self._restart(name, "classic")
            load.stop()
            self._read_up(load.acknowledged)
        for name in names:
            self._stop(name)
        self._look("all are gone", "Empty")
        events = [
            event
            for host in self._hosts
            for event in host.events[self._before if host is self._java else 0 :]
        ]
        return Outcome(
            self._steps,
            account_of(events, load.acknowledged, commits_itself=self._variant.commits == "auto"),
            self._behind(load.ends),
            [each for host in self._hosts for each in host.troubles],
        )

    def _restart(self, name: str, protocol: str) -> None:
        """End a member, and start it again with a protocol, once the others have its part."""
        if name == self._variant.killed:
            self._running.pop(name)[1].kill()
            self._settle(f"{name} is killed")
        elif self._variant.is_static:
            self._stop(name)
            self._look(f"{name} is gone")
        else:
            self._stop(name)
            self._settle(f"{name} is gone")
        self._start(name, protocol)
        self._settle(f"{name} is {protocol}")

    def _start(self, name: str, protocol: str) -> None:
        self._lives[name] = self._lives.get(name, 0) + 1
        who = f"{name}.{self._lives[name]}"
        host = self._java if name.startswith("j") else self._process()
        settings = {"group.id": self._variant.group, "group.protocol": protocol}
        if self._variant.is_static:
            settings["group.instance.id"] = name
        settings.update(_AUTO_COMMIT if self._variant.commits == "auto" else _OWN_COMMIT)
        if protocol == "classic":
            assignor = self._variant.assignor
            settings["session.timeout.ms"] = str(self._variant.session_ms)
            settings["heartbeat.interval.ms"] = "300"
            settings["partition.assignment.strategy"] = (
                _ASSIGNORS[assignor] if host is self._java else assignor
            )
        self._running[name] = (who, host)
        host.start(who, list(self._topics), settings)

    def _process(self) -> Host:
        """Start a process for one member of librdkafka."""
        host = self._stack.enter_context(Host.of_librdkafka(self._bootstrap))
        self._hosts.append(host)
        return host

    def _stop(self, name: str) -> None:
        who, host = self._running.pop(name)
        host.stop(who)

    def _settle(self, step: str) -> None:
        """Wait until every partition has one owner and every member a part; look at the group."""
        names = {who for who, _ in self._running.values()}

        def is_settled() -> bool:
            owned = [each for host in self._hosts for each in list(host.owned)]
            mine = [each for each in owned if each[0] in self._places]
            return (
                sorted(place for place, _ in mine) == sorted(self._places)
                and {who for _, who in mine} == names
            )

        self._java.wait_for(is_settled, f"all partitions to be owned by {sorted(names)}: {step}")
        self._look(step, "Stable")

    def _look(self, step: str, state: str = "") -> None:
        """Note what an administrator sees of the group, once it stays the same, in that state."""
        until_s = time.monotonic() + PATIENCE_S
        last, seen = "", self._seen()
        while seen != last or state not in seen:
            if time.monotonic() > until_s:
                raise DataError(f"the group did not become {state}: {step}: {seen}")
            time.sleep(_LOOK_S)
            last, seen = seen, self._seen()
        self._steps.append(f"{step}: {seen}")
        self._tell(self._steps[-1])

    def _seen(self) -> str:
        """The group as it is listed and described, without lives, epochs from the first one."""
        told = _LIFE.sub("", self._java.ask("group", self._variant.group))
        epochs = [int(each) for each in _EPOCH.findall(told)]
        if self._first_epoch is None and epochs:
            self._first_epoch = epochs[0]
        first = self._first_epoch or 0
        return _EPOCH.sub(lambda found: f"+{int(found[0]) - first}", told)

    def _read_up(self, acknowledged: list[str]) -> None:
        """Wait until all that was written is read."""
        written = set(acknowledged)

        def is_read() -> bool:
            events = [each for host in self._hosts for each in list(host.events)]
            return written <= {each.value for each in events if each.what == "read"}

        self._java.wait_for(is_read, "all records to be read")

    def _behind(self, ends: dict[str, int]) -> list[str]:
        """Partitions whose last commit is not their end."""
        told = self._java.ask("offsets", self._variant.group)
        committed: dict[str, Any] = dict(each.split("=") for each in told.split())
        return [
            f"{place} is committed to {committed.get(place)} of {end}"
            for place, end in sorted(ends.items())
            if committed.get(place) != str(end)
        ]


def play_upgrade(
    bootstrap: str, variant: Variant, java: Host, tell: Callable[[str], None]
) -> Outcome:
    """Play one variant at a broker.

    Args:
        bootstrap: Address of the brokers.
        variant: Which group.
        java: Process for Java's members.
        tell: Told each step as it is over.

    Raises:
        DataError: a step did not come to its end.
    """
    with Upgrade(bootstrap, variant, java, tell) as upgrade:
        return upgrade.play()
