"""A broker under test, the members of a script, and the pending requests.

`requests` and `broker` hold the commands, `play` runs them line by line.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.kafka.api_versions import versions_of
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.catalogue import api_named
from coordinator_sim_conformance.requirements import family_of
from coordinator_sim_conformance.script.answers import Words, record_words, reply_words
from coordinator_sim_conformance.script.bodies import version_for
from coordinator_sim_conformance.script.comparing import Observed, mismatch, said
from coordinator_sim_conformance.script.consumer_answers import (
    consumer_record_words,
    epoch_of,
    first_epoch,
    is_consumer_record,
)
from coordinator_sim_conformance.script.new_group_answers import is_of_new_groups, new_group_words
from coordinator_sim_conformance.targets.asked import FAILING, settings_of
from coordinator_sim_conformance.targets.target import (
    Answer,
    Call,
    Capability,
    Json,
    Outcome,
    Target,
    Unsupported,
    World,
)

_TOPICS: Final = {"t": 6, "u": 6, "foo": 6, "bar": 6}
"""Default topics of a broker, and their partitions."""
_BUSY_S: Final = 10.0
"""How long an answer that waits for nothing may take in real time."""
_ANY: Final = 32_767
"""A version above every other."""
NO_TOPIC: Final = "AQEBAQEBAQEBAQEBAQEBAQ"
"""An id that no topic has; the topic `nobody` of a script."""
_ID_IS_KNOWN: Final = frozenset({0, 79})
"""NONE and MEMBER_ID_REQUIRED: the JoinGroup replies whose member id is the member's own."""


def _topics_of(word: str) -> dict[str, int]:
    """Return the partitions of the topics in `t,foo:6`; a topic has 2 unless it says so."""
    entries = (entry.partition(":") for entry in word.split(","))
    return {name: int(count or 2) for name, _, count in entries}


class CaseFailed(CoordinatorSimError):
    """Failure of a target to do what a case requires.

    Args:
        problem: Expected and observed.
        transcript: Requests and effects until then.
        line: Line of the script that is not met; empty where no script is played.
        came: What came instead, in the script's words; empty where nothing was observed.
    """

    def __init__(
        self, problem: str, transcript: tuple[str, ...], line: str = "", came: str = ""
    ) -> None:
        super().__init__(problem, transcript, line, came)
        self.problem = problem
        self.transcript = transcript
        self.line = line
        self.came = came

    def __str__(self) -> str:
        """Return the problem, behind the line that it is about."""
        return f"{self.line}: {self.problem}" if self.line else self.problem


class CaseBroken(CaseFailed):
    """The case or the target broke off, so that nothing is known of the requirement."""


BREAKS: Final = (AttributeError, LookupError, TypeError, ValueError)
"""What an answer of another form than Kafka's raises in a case."""

_BEATS: Final = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
_OF_SESSIONS: Final = ("ShareFetch", "ShareAcknowledge")


@dataclass
class Actor:
    """A member of the script and the fields that it would send again."""

    member_id: str = ""
    instance_id: str | None = None
    generation_id: int = -1
    protocols: tuple[str, ...] = ("range",)
    metadata: str = ""
    topics: tuple[str, ...] | None = ()
    protocol_type: str = "consumer"
    protocol_name: str = "range"
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    names: tuple[str, ...] = ("foo",)
    """Topics that it names in a ConsumerGroupHeartbeat."""
    holds: str = "none"
    """Partitions that it was last told to have, in the script's words."""
    is_hidden: bool = False
    """Whether it has a member id that neither an answer nor the target has shown yet."""
    session_epoch: int = 0
    """Of its next ShareFetch or ShareAcknowledge."""
    sent_epoch: int = 0
    """Of its last ShareFetch or ShareAcknowledge."""
    producer: tuple[int, int] = (-1, -1)
    """Id and epoch of a transactional producer."""
    sequences: dict[str, int] = field(default_factory=dict)
    """Partition -> how many records it has produced there."""


@dataclass
class Stage:
    """State that a script has set up so far; group `g` by default.

    Args:
        target: Target to play on.
        profile: Profile whose behaviour is required.
        trace: Whether to trace a target that can be traced.
        switches: Switches of the profile, set by hand.
        at_version: Version of every request that names none, as far as the profile offers it; None
            takes the script's.
    """

    target: Target
    profile: str
    trace: bool = False
    switches: tuple[str, ...] = ()
    at_version: int | None = None
    delay_ms: int = 0
    group: str = "g"
    actors: dict[str, Actor] = field(default_factory=dict)
    transcript: list[str] = field(default_factory=list)
    records: list[Json] = field(default_factory=list)
    _sent: dict[int, tuple[str, str]] = field(default_factory=dict)
    _unwatched: set[int] = field(default_factory=set)
    _waits_first: bool = False
    _begun: set[str] = field(default_factory=set)
    _open: set[int] = field(default_factory=set)
    _started: bool = False
    _unseen: list[Answer] = field(default_factory=list)
    _topics: dict[str, str] = field(default_factory=dict)
    """Names of topics by their ids, once a command needed them."""
    unshown: str = ""
    """Why the target did not show what a line of the script is about."""

    # -- the broker ------------------------------------------------------------------------

    def start(self, options: Words) -> None:
        """Start over with a broker of these settings and the topics it knows."""
        topics = options.get("topics", "")
        started = options.get("started", "yes") == "yes"
        records = options.get("records", "no") == "yes"
        for is_needed, capability in (
            (not started, Capability.LIFE),
            (FAILING in options.get("assignors", ""), Capability.FAILING_ASSIGNOR),
            (records, Capability.RECORDS),
        ):
            if is_needed:
                self._offered(capability)
        self.delay_ms = int(options.get("delay", "0"))
        self._waits_first = "delay" not in options and self.target.delay_ms > 0
        settings = settings_of(options)
        defaults = {
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "100",
            # 4.0 and 4.1 would answer 5 ms late; cases about that set it.
            "group.coordinator.append.linger.ms": "0",
        }
        if self.family == "J":
            # A target is computed when it is due, unless a case is about waiting for it.
            defaults["group.consumer.assignment.interval.ms"] = "0"
            defaults["group.share.assignment.interval.ms"] = "0"
            defaults["group.streams.assignment.interval.ms"] = "0"
            defaults["group.streams.initial.rebalance.delay.ms"] = "0"
        self.target.start(
            World(
                profile=self.profile,
                settings=defaults | settings,
                asked=frozenset(settings),
                partitions=int(options.get("partitions", "50")),
                topics=_topics_of(topics) if topics else dict(_TOPICS),
                trace=self.trace,
                switches=self.switches,
                started=started,
                records=records,
            )
        )
        self._started = True
        self._topics = {}

    @property
    def family(self) -> str:
        """Letter of the profile's family."""
        return family_of(self.profile)

    def number(self, word: str) -> int:
        """Return an epoch or a generation as a script writes it: a number, `E` or `E+1`."""
        return epoch_of(word, first_epoch(self.profile))

    # -- members ---------------------------------------------------------------------------

    def actor(self, word: str) -> Actor:
        """Return the member of that name, known from now on; `L:i1` also gives its instance id."""
        label, _, instance_id = word.partition(":")
        actor = self.actors.setdefault(label, Actor())
        if instance_id:
            actor.instance_id = instance_id
        return actor

    def id_of(self, name: str) -> str:
        """Return the member id of a name; an unknown name is an id itself."""
        return self.actors[name].member_id if name in self.actors else name

    def named(self, member_id: str | None) -> str:
        """Return the name of a member id or of a topic's id; an unknown id stays."""
        if not member_id:
            return "-"
        if member_id in self._topics:
            return self._topics[member_id]
        for label, actor in self.actors.items():
            if actor.member_id == member_id:
                return label
        return member_id

    # -- running and observing ------------------------------------------------------------

    def call(self, label: str, api: str, version: int, data: Json, options: Words) -> Outcome:
        """Send a request for a member; `client=` and `on=` name its client id and connection."""
        self.ready()
        call_id = len(self._sent) + 1
        self._sent[call_id] = (label.partition(":")[0], api)
        self._open.add(call_id)
        return self.target.call(
            Call(
                call_id=call_id,
                api=api,
                version=version,
                data=data,
                client_id=options.get("client", label.partition(":")[0]),
                connection=options.get("on", ""),
            )
        )

    def version(self, api: str, wanted: int, options: Words, most: int = _ANY) -> int:
        """Return the version to send: `v=` or the wanted one, as far as the profile knows it.

        Args:
            api: Kafka's name of the API.
            wanted: Version that the script has in mind.
            options: Options of the command.
            most: Newest version that does what the command is about.
        """
        if "v" in options or self.at_version is None:
            said = version_for(self.profile, api, int(options.get("v", wanted)))
            return said if "v" in options else self.target.newest(api, said)
        offered = versions_of(profile_named(self.profile)).get(api_named(api))
        low, high = (wanted, wanted) if offered is None else offered
        return max(low, min(self.at_version, high, most))

    def unwatched(self, outcome: Outcome) -> Outcome:
        """Leave the answer to the last request out, whenever it comes; return what else came."""
        self._unwatched.add(len(self._sent))
        return outcome

    def is_answered(self, outcome: Outcome) -> bool:
        """Whether the last request was answered at once."""
        return any(answer.call_id == len(self._sent) for answer in outcome.answers)

    def ids_of_group(self) -> list[str] | None:
        """Return the ids of members and, where the target shows them, of pending ones.

        None where the target shows no members.
        """
        try:
            view = self.target.view(self.group)
        except Unsupported:
            return None
        return [] if view is None else [*(view.member_ids or ()), *(view.pending_ids or ())]

    def need(self, capability: Capability) -> None:
        """Continue only if the target offers this capability.

        Raises:
            Unsupported: the target does not offer it.
        """
        self._offered(capability)
        self.ready()

    def _offered(self, capability: Capability) -> None:
        if not self.target.offers(capability):
            raise Unsupported(f"{self.target.name} does not offer {capability.value}")

    def ready(self) -> None:
        """Start the broker unless the script did."""
        if not self._started:
            self.start({})

    def observe(self, outcome: Outcome) -> list[Observed]:
        """Record the effects of an operation, and return them in the script's words."""
        for answer in outcome.answers:
            self._open.discard(answer.call_id)
            self._learn(answer)
        self.records += outcome.records
        watched = (each for each in outcome.answers if each.call_id not in self._unwatched)
        return [self._words(answer) for answer in watched]

    def expect(
        self,
        line: str,
        wanted: str | None,
        look: Callable[[Outcome], list[Observed]],
        seen: Outcome,
    ) -> None:
        """Record what is observed, and compare it with the wanted part of the line.

        Where time is real, what is wanted may come a little late: it is looked at again.

        Args:
            line: Line of the script, without the wanted part.
            wanted: The wanted part; None allows anything.
            look: Takes what came, and returns all that this line has observed.
            seen: What came first.

        Raises:
            CaseFailed: the two differ.
        """
        parts = [part.split() for part in (wanted or "-").split(";") if part.strip() != "-"]
        missed_s = time.monotonic()
        observed = look(seen)
        while (problem := mismatch(parts, observed)) is not None and wanted is not None:
            later = self.target.late(missed_s)
            if later is None:
                break
            observed = look(later)
        self.transcript.append(f"{line.strip():<40} | {said(observed)}")
        if wanted is not None:
            self.fail_on(problem)

    def with_first_answer(self, outcome: Outcome) -> Outcome:
        """Return a fresh group's first JoinGroup with its answer, where the target delays it.

        A script that does not ask for a delay has none in mind.
        """
        if self.group in self._begun or not self._waits_first:
            return outcome
        began_s = time.monotonic()
        outcome = self._with_answer(outcome, lambda: self.target.late(began_s))
        self._begun.update(
            self.group
            for answer in outcome.answers
            if "generationId" in answer.data and answer.data["generationId"] > 0
        )
        return outcome

    def answered(self, outcome: Outcome) -> Outcome:
        """Return an outcome with the answer to the last request, which waits for nothing else.

        Where time is real, a busy host may take seconds for it.
        """
        end_s = time.monotonic() + _BUSY_S

        def late() -> Outcome | None:
            now_s = time.monotonic()
            return self.target.late(now_s) if now_s < end_s else None

        return self._with_answer(outcome, late)

    def _with_answer(self, outcome: Outcome, late: Callable[[], Outcome | None]) -> Outcome:
        while not self.is_answered(outcome) and (later := late()) is not None:
            outcome = Outcome((*outcome.answers, *later.answers), outcome.records + later.records)
        return outcome

    def await_answers(self) -> None:
        """Where time is real, wait for all answers, as long as they may be late."""
        began_s = time.monotonic()
        while self._open and (later := self.target.late(began_s)) is not None:
            self.observe(later)

    def expect_answers(self, line: str, wanted: str | None, outcome: Outcome) -> None:
        """Compare the answers that an operation gave with the wanted ones.

        Raises:
            CaseFailed: the two differ.
        """
        observed: list[Observed] = []

        def look(came: Outcome) -> list[Observed]:
            observed.extend(self.observe(came))
            return observed

        earlier, self._unseen = self._unseen, []
        self.expect(line, wanted, look, Outcome((*earlier, *outcome.answers), outcome.records))

    def expect_view(self, line: str, wanted: str, shown: Callable[[], Observed]) -> None:
        """Compare what the target shows; answers that come meanwhile are kept for the next line.

        Raises:
            CaseFailed: the two differ.
        """

        def look(came: Outcome) -> list[Observed]:
            self._unseen.extend(came.answers)
            return [shown()]

        self.expect(line, wanted, look, Outcome())

    def fail_on(self, problem: str | None) -> None:
        """Fail the case for a problem, if there is one.

        Raises:
            CaseFailed: there is a problem.
        """
        if problem is not None:
            raise CaseFailed(problem, tuple(self.transcript))

    def expect_records(self, line: str, wanted: list[list[str]]) -> None:
        """Compare the records appended since the last `--` with the wanted ones, in order."""
        if not self.target.offers(Capability.LOG):
            return
        observed = [self._record_words(record) for record in self.records]
        self.transcript.append(f"{line.strip():<40} | {said(observed)}")
        self.fail_on(mismatch(wanted, observed, ordered=True))

    def _learn(self, answer: Answer) -> None:
        label, api = self._sent.get(answer.call_id, ("", ""))
        code = answer.data.get("errorCode")
        if api in _BEATS and code == 0:
            self._learn_epoch(self.actors[label], self._words(answer)[1], answer.data)
        if api in _OF_SESSIONS and code == 0:
            self.actors[label].session_epoch = max(self.actors[label].sent_epoch + 1, 0)
        if api == "InitProducerId" and code == 0:
            self.actors[label].producer = (answer.data["producerId"], answer.data["producerEpoch"])
        if api != "JoinGroup":
            return
        actor = self.actors[label]
        actor.is_hidden = False
        if code in _ID_IS_KNOWN and answer.data["memberId"]:
            actor.member_id = answer.data["memberId"]
        if code == 0:
            actor.generation_id = answer.data["generationId"]
            actor.protocol_name = answer.data["protocolName"]

    def _learn_epoch(self, actor: Actor, words: Words, data: Json) -> None:
        """Store the member id, epoch and assignment of a heartbeat's answer."""
        actor.member_id = data["memberId"]
        actor.generation_id = max(data["memberEpoch"], -1)
        told = words["active"] if "active" in words else words["has"]
        if told != "-":
            actor.holds = told

    def _words(self, answer: Answer) -> Observed:
        label, api = self._sent.get(answer.call_id, ("marker", "EndTxnMarker"))
        data: dict[str, Any] = answer.data
        if is_of_new_groups(api):
            return label, new_group_words(api, data, self.named, first_epoch(self.profile))
        return label, reply_words(api, data, self.named)

    def _record_words(self, record: Json) -> Observed:
        if is_consumer_record(record):
            return consumer_record_words(record, self.named, first_epoch(self.profile))
        return record_words(record, self.named)

    # -- topics ----------------------------------------------------------------------------

    def topic_id(self, name: str) -> str:
        """Return the id of a topic; a name that is no topic's is an id itself."""
        return next((each for each, known in self._topics.items() if known == name), name)

    def learn_topics(self) -> None:
        """Ask the target for the ids of its topics.

        Raises:
            Unsupported: it does not tell them.
        """
        self._topics = {each: name for name, each in self.target.topic_ids().items()}
        self._topics[NO_TOPIC] = "nobody"
