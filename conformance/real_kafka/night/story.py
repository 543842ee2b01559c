"""The groups of a night, what is done to each, and the true causes of what follows: data.

An action is words: `start`, `stop`, `bounce`, `kill`, `hold` and `release` of a member, `tell` it a
line of `UpgradeMembers.java` (NAME, GROUP and TOPICS are its own), `set` a setting of members that
start later, `ask` one of Kafka's tools, `put` and `delete` a connector. Members are `a`, `b` and
`c`; `a` and `b` are there at the beginning and at the end of every fault.
"""

from typing import Final

from msgspec import Struct

SESSION_S: Final = 6
STATIC_SESSION_S: Final = 12
POLL_S: Final = 7
"""Poll timeout of Java's consumers."""
DELAY_S: Final = 6
"""How long Connect waits for a worker that went."""
_SETTLE_S: Final = 3

_CLOSED: Final = "being closed|stopped|shut down"
_STARTED: Final = "subscribed to|started"
_REMOVED: Final = "no member any more|UNKNOWN_MEMBER_ID|fenced|session timed out"
_TOPICS: Final = "metadata has changed|topics"
_BY_ADMIN: Final = "removed by an admin|cleanup"
_REJOINS: Final = ("MEMBER_REJOIN", "METADATA_CHANGED", "LEADER_REJOIN", "TOPICS_CHANGED")


class Truth(Struct, frozen=True):
    """The true cause of a rebalance, as an answer has to tell it.

    Args:
        reasons: Reasons of the coordinator (`RebalanceReason`) that are true.
        member: The member that began it; empty for any.
        words: Pattern of the first cause in the answer's words.
    """

    reasons: tuple[str, ...]
    member: str
    words: str


class Step(Struct, frozen=True):
    """One action, the true causes of rebalances that may follow, and the time for them."""

    action: str
    truths: tuple[Truth, ...]
    wait_s: float


class Group(Struct, frozen=True):
    """A group.

    Args:
        kind: `java`, `librdkafka`, `streams` or `connect`.
        faults: Each a sequence of steps; a seed draws their order.
    """

    name: str
    kind: str
    topics: str
    settings: dict[str, str]
    faults: tuple[tuple[Step, ...], ...]


def joined(member: str = "b", words: str = _STARTED) -> Truth:
    """A member joined, because its process started or for another reason."""
    return Truth(("MEMBER_JOINED",), member, words)


def left(member: str = "b", words: str = f"left|{_CLOSED}") -> Truth:
    """A member left, because it was shut down or for another reason."""
    return Truth(("MEMBER_LEFT",), member, words)


def failed(member: str = "b", words: str = f"no heartbeat|failed|{_CLOSED}") -> Truth:
    """A member was killed or held, or stopped without leaving, until its session ran out."""
    return Truth(("MEMBER_FAILED",), member, words)


def changed(words: str, member: str = "") -> Truth:
    """A member joined again because of something that changed."""
    return Truth(_REJOINS, member, words)


def step(action: str, *truths: Truth, wait_s: float = _SETTLE_S) -> Step:
    """A step."""
    return Step(action, truths, wait_s)


OUTAGE: Final = Truth(
    (*_REJOINS, "MEMBER_JOINED"), "", r"[Cc]oordinator|Disconnect|metadata has changed .*=\[\]"
)
"""Of a broker that restarts clients tell that it is away, loads, or knows no partition yet."""
START: Final = (
    joined("a"),
    joined("b"),
    # The first instance of a Streams application makes topics of its own.
    changed(f"{_STARTED}|{_TOPICS}|given up"),
)
_SLOW: Final = 2 * _SETTLE_S


def _deploy(letter: str) -> tuple[Step, Step]:
    """A member is shut down and started again."""
    more = (changed(f"{_TOPICS}|given up"),)
    return step(f"stop {letter}", left(letter)), step(f"start {letter}", joined(letter), *more)


def _killed(session_s: float) -> tuple[Step, Step]:
    gone = step("kill b", failed(), wait_s=session_s + _SETTLE_S)
    return gone, step("start b", joined())


def _held(session_s: float) -> tuple[Step, Step]:
    gone = step("hold b", failed(), wait_s=session_s + _SETTLE_S)
    return gone, step("release b", joined("b", _REMOVED), wait_s=_SLOW)


def _bounced(letter: str, *truths: Truth) -> Step:
    """A static member restarts within its session; if it takes longer, there are rebalances."""
    return step(f"bounce {letter}", *truths, failed(letter), joined(letter))


def _grown(topic: str) -> tuple[Step]:
    action = f"ask topics --alter --topic {topic} --partitions 6"
    return (step(action, changed(_TOPICS), wait_s=3 * _SETTLE_S),)


SCALE: Final = (step("start c", joined("c")), step("stop c", left("c")))
ROLL: Final = (*_deploy("a"), *_deploy("b"))
KILL, HOLD = _killed(SESSION_S), _held(SESSION_S)
NAP: Final = (
    step(f"tell b nap NAME {POLL_S * 1500}", left("b", "poll timeout"), wait_s=POLL_S * 1.3),
    step("wait", joined("b", "poll timeout|pro-actively"), wait_s=3 * _SETTLE_S),
)
AWAY: Final = (
    step("tell b unsubscribe NAME", left("b", "unsubscribed|subscription up"), wait_s=_SLOW),
    step("tell b subscribe NAME TOPICS", joined("b", f"{_STARTED}|unsubscribed"), wait_s=_SLOW),
)
RESUBSCRIBE: Final = (
    step("tell b subscribe NAME TOPICS,refunds", changed("subscri", "b"), wait_s=_SLOW),
    step("tell b subscribe NAME TOPICS", changed("subscri", "b"), wait_s=_SLOW),
)
REJOIN: Final = (step("tell b rejoin NAME new-weights", changed("new-weights", "b"), wait_s=_SLOW),)
_BACK: Final = f"{_REMOVED}|{_BY_ADMIN}"
EVICT: Final = (
    step(
        "tell a evict GROUP cleanup",
        *(left("", _BY_ADMIN), joined("a", _BACK), joined("b", _BACK)),
        wait_s=3 * _SETTLE_S,
    ),
)
TOPIC: Final = (
    step("ask topics --delete --topic trials", changed(_TOPICS), wait_s=3 * _SETTLE_S),
    step("ask topics --create --topic trials --partitions 2", changed(_TOPICS), wait_s=_SLOW),
)
FORGET: Final = (
    step("stop a", left("a")),
    step("stop b", left("b")),
    step("ask groups --delete-offsets --group orders --topic orders", wait_s=0),
    step("ask groups --delete --group orders", wait_s=0),
    step("start a", joined("a")),
    step("start b", joined("b")),
)
_ASSIGNORS: Final = "set partition.assignment.strategy=" + ",".join(
    f"org.apache.kafka.clients.consumer.{name}Assignor"
    for name in ("CooperativeSticky", "RoundRobin", "Range")
)
_OTHER: Final = Truth(("STATIC_PROTOCOL_CHANGE", *_REJOINS), "", f"other assignors|{_STARTED}")
_ROLL_STREAMS: Final = tuple(
    each
    for letter in "ab"
    for each in (
        # Of the classic protocol an instance does not leave its group.
        step(f"stop {letter}", left(letter), failed(letter), wait_s=SESSION_S + _SETTLE_S),
        step(f"start {letter}", joined(letter), changed(f"{_TOPICS}|{_STARTED}")),
    )
)
_SCALE_STREAMS: Final = (
    step("start c", joined("c")),
    step("stop c", left("c"), failed("c"), wait_s=SESSION_S + _SETTLE_S),
)


def _connectors() -> tuple[Step, ...]:
    """Connectors are made, configured anew and deleted."""
    puts = (("files", "orders"), ("pages", "orders"), ("files", "refunds"))
    return (
        *(_put(name, topic) for name, topic in puts),
        *(
            step(f"delete {name}", changed(f"connector {name} was removed"), wait_s=_SLOW)
            for name in ("files", "pages")
        ),
    )


def _put(name: str, topic: str) -> Step:
    truths = changed(f"connector {name}"), changed(f"tasks .*{name}")
    return step(f"put {name} {topic}", *truths, wait_s=_SLOW)


_WAITED: Final = changed("scheduled.rebalance.max.delay")
_STARTED_WORKER: Final = step("start b", joined(), changed("given up"), _WAITED, wait_s=_SLOW)
WORKERS: Final = (
    (step("kill b", failed(), _WAITED, wait_s=SESSION_S + DELAY_S + _SLOW), _STARTED_WORKER),
    (step("stop b", left(), _WAITED), _STARTED_WORKER),
    _connectors(),
    _connectors(),
)
_SESSION: Final = {
    "session.timeout.ms": str(SESSION_S * 1000),
    "heartbeat.interval.ms": "1000",
}
_JAVA: Final = {
    "enable.auto.commit": "true",
    "auto.commit.interval.ms": "1000",
    "max.poll.interval.ms": str(POLL_S * 1000),
    "metadata.max.age.ms": "2000",
}
_CLASSIC: Final = {"group.protocol": "classic", **_SESSION}
_STATIC: Final = {**_CLASSIC, "session.timeout.ms": str(STATIC_SESSION_S * 1000)}
_OF_JAVA: Final = (SCALE, KILL, HOLD, ROLL, NAP, RESUBSCRIBE, AWAY)
GROUPS: Final = (
    Group(
        *("orders", "java", "orders,trials", _JAVA | _CLASSIC),
        (
            *(*_OF_JAVA, _grown("orders"), TOPIC, REJOIN, EVICT, FORGET),
            (step(_ASSIGNORS, wait_s=0), *ROLL),
        ),
    ),
    Group(
        *("billing", "java", "refunds", _JAVA | _STATIC | {"group.instance.id": "NAME"}),
        (
            *((_bounced("a"), _bounced("b")), EVICT),
            *(_killed(STATIC_SESSION_S), _held(STATIC_SESSION_S)),
            (
                step("stop b", failed(), wait_s=STATIC_SESSION_S + _SETTLE_S),
                step("start b", joined()),
            ),
            (step(_ASSIGNORS, wait_s=0), _bounced("a", _OTHER), _bounced("b", _OTHER)),
        ),
    ),
    Group(
        *("modern", "java", "payments", _JAVA | {"group.protocol": "consumer"}),
        (*_OF_JAVA, _grown("payments")),
    ),
    Group(
        "carts", "librdkafka", "clicks", {"enable.auto.commit": "true", **_SESSION}, _OF_JAVA[:4]
    ),
    Group(*("counts", "streams", "clicks", _CLASSIC), (_SCALE_STREAMS, KILL, HOLD, _ROLL_STREAMS)),
    Group(
        *("totals", "streams", "clicks", {"group.protocol": "streams"}),
        (_SCALE_STREAMS, KILL, HOLD, _ROLL_STREAMS),
    ),
    Group("connect", "connect", "", _SESSION, WORKERS),
)
FIRST: Final = {
    "connect": (_put("steady", "files"), _put("calm", "files")),
}
"""What is done to a group before its faults: two connectors are there all night."""
