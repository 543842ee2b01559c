"""Reads required behaviours written as short scripts, and plays them.

A case starts at the margin with its id and title; `@` lines describe the requirement, and the
script follows:

    SYNC-002 a follower syncs first
      @ LSJ must seen=0.10.2-4.4
      @ scala GroupCoordinatorTest.testSyncGroupFollowerAfterLeader
      completing A B
      --
      sync B           | -
      sync A A=a B=b   | A NONE work=a; B NONE work=b
      [J] state Stable gen=2
      log group gen=2 leader=A members=A,B

The first `@` line names the families, the level and, where needed, `quirk` (Kafka behaves oddly
here), `since=`, `until=`, the span of releases it was `seen=` on, or the `switches=` of a Kafka
without a profile. Each other one is a source. A case without `@` lines is a variant of the
requirement above it: its id adds a word behind a dot.

A and B are members. `L:i1` is the member L with instance id i1. A member's first JoinGroup has no
member id, later requests have the one it was given; its generation is the last it was told of.
Behind `|` stands every answer that left with the command, in any order, `-` for none; a line
without `|` may answer anything. An answer names the fields that matter. `--` ends the preparation:
`log` compares the records appended since, in order. `[S]`, `[LS]`, `[2.8 3.9]` in front of a line
keep it for these families or profiles. Times are milliseconds. `requests`, `broker` and this
module hold the commands.

Script commands of consumer groups (KIP-848): heartbeats, descriptions.

Each takes the words after its name; its docstring shows its form in a script. Partitions and
epochs are written as in `consumer_answers`.

Script commands about records: producing them, transactions, settings of a group.

Each takes the words after its name; its docstring shows its form in a script. A script that uses
them begins with `broker records=yes`.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError, CoordinatorSimError, DataError
from coordinator_sim.log.format.record_batches import (
    NO_ID,
    Record,
    RecordBatch,
    encode_record_batch,
)
from coordinator_sim_conformance.requirements import RELEASES, Level, Requirement, family_of
from coordinator_sim_conformance.script import (
    bodies,
    broker,
    requests,
    share_requests,
    streams_requests,
)
from coordinator_sim_conformance.script.answers import Words
from coordinator_sim_conformance.script.comparing import names_of, options_of
from coordinator_sim_conformance.script.consumer_blobs import partitions_of
from coordinator_sim_conformance.script.stage import BREAKS, Actor, CaseBroken, CaseFailed, Stage
from coordinator_sim_conformance.targets.target import (
    Capability,
    Json,
    MalformedAnswer,
    Outcome,
    Target,
    Unsupported,
)

_PRODUCE: Final = 11
"""The newest version in which a transaction's partitions are added by a request of their own."""
_ADD_PARTITIONS: Final = 3
_END: Final = 3
_INIT_PRODUCER: Final = 4
_CONFIGURE: Final = 1
_GROUP_RESOURCE: Final = 32
_OF_TRANSACTIONS: Final = 1
_TIMEOUT_MS: Final = 10_000
_TRIES: Final = 40
_PAUSE_MS: Final = 250
_TIMELESS_MS: Final = -1
"""A timestamp that no broker finds too old or too new."""


def configure(stage: Stage, words: list[str]) -> Outcome:
    """`configure share.auto.offset.reset=earliest`: settings of the script's group."""
    stage.ready()
    changes = [
        {"name": name, "configOperation": 0, "value": value}
        for name, value in options_of(words).items()
    ]
    resource = {
        "resourceType": _GROUP_RESOURCE,
        "resourceName": stage.group,
        "configs": changes,
    }
    data: Json = {"resources": [resource], "validateOnly": False}
    return stage.answered(stage.call("configure", "IncrementalAlterConfigs", _CONFIGURE, data, {}))


def produce(stage: Stage, words: list[str]) -> Outcome:
    """`produce foo-0 5 [by=P]`: a batch of 5 records, of producer P in its transaction."""
    stage.ready()
    (place, count), options = names_of(words), options_of(words)
    topic, _, partition = place.rpartition("-")
    writer = stage.actor(options["by"]) if "by" in options else Actor()
    batch = _batch(writer, place, int(count))
    entry = {"index": int(partition), "records": bodies.text(batch)}
    data: Json = {
        "transactionalId": options.get("by"),
        "acks": -1,
        "timeoutMs": _TIMEOUT_MS,
        "topicData": [{"name": topic, "partitionData": [entry]}],
    }
    return stage.answered(stage.call("produce", "Produce", _PRODUCE, data, options))


def _batch(writer: Actor, place: str, count: int) -> bytes:
    """Return a batch; that of a producer in a transaction continues its sequence."""
    producer_id, epoch = writer.producer
    sequence = NO_ID
    if producer_id >= 0:
        sequence = writer.sequences.get(place, 0)
        writer.sequences[place] = sequence + count
    records = tuple(
        Record(offset=index, timestamp_ms=_TIMELESS_MS, key=None, value=b"%d" % index)
        for index in range(count)
    )
    return encode_record_batch(
        RecordBatch(
            base_offset=0,
            last_offset=count - 1,
            records=records,
            base_timestamp_ms=_TIMELESS_MS,
            max_timestamp_ms=_TIMELESS_MS,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=producer_id >= 0,
        )
    )


# -- transactions --------------------------------------------------------------------------


def begin(stage: Stage, words: list[str]) -> None:
    """`begin P`: the producer P gets its id, once there is a coordinator of transactions."""
    (label,) = words
    stage.ready()
    writer = stage.actor(label)
    find = bodies.find_coordinator(1, [label], _OF_TRANSACTIONS)
    fields: Json = {
        "transactionalId": label,
        "transactionTimeoutMs": 60_000,
        "producerId": -1,
        "producerEpoch": -1,
    }
    for _ in range(_TRIES):
        stage.observe(stage.call("find", "FindCoordinator", 1, find, {}))
        stage.observe(stage.call(label, "InitProducerId", _INIT_PRODUCER, fields, {}))
        stage.await_answers()
        if writer.producer[0] >= 0:
            return
        stage.observe(stage.target.advance(_PAUSE_MS))
    raise CaseBroken(f"no producer id for {label}", tuple(stage.transcript))


def enlist(stage: Stage, words: list[str]) -> Outcome:
    """`enlist P foo-0 foo-1`: AddPartitionsToTxn."""
    label, *places = words
    topics: dict[str, list[int]] = {}
    for place in places:
        topic, _, partition = place.rpartition("-")
        topics.setdefault(topic, []).append(int(partition))
    producer_id, epoch = stage.actor(label).producer
    data: Json = {
        "v3AndBelowTransactionalId": label,
        "v3AndBelowProducerId": producer_id,
        "v3AndBelowProducerEpoch": epoch,
        "v3AndBelowTopics": [{"name": name, "partitions": each} for name, each in topics.items()],
    }
    return stage.answered(stage.call(label, "AddPartitionsToTxn", _ADD_PARTITIONS, data, {}))


def end(stage: Stage, words: list[str]) -> Outcome:
    """`end P COMMIT`, `end P ABORT`: EndTxn."""
    label, how = words
    producer_id, epoch = stage.actor(label).producer
    data: Json = {
        "transactionalId": label,
        "producerId": producer_id,
        "producerEpoch": epoch,
        "committed": how == "COMMIT",
    }
    return stage.answered(stage.call(label, "EndTxn", _END, data, {}))


_REBALANCE_TIMEOUT_MS: Final = 5_000
_BLANK: Final = "  "
_ROUNDS: Final = 3
"""Heartbeats in which a member hears of its target, gives up what it must, and gets the rest."""


def beat(stage: Stage, words: list[str]) -> Outcome:
    """`beat A [full] [e= own= names= regex= rebalance= assignor= rack= i= id= v= on=]`.

    A member joins at first, and later repeats the epoch it was told; it says all that there is to
    say when it joins or with `full`, else what the command names. `own=all` reports what it was
    told to have. `-` is null, `none` empty, `blank` a name of spaces.
    """
    options = options_of(words[1:])
    actor = stage.actor(words[0])
    if family_of(stage.profile) == "J":
        _need_groups(stage)
    epoch = stage.number(options.get("e", str(max(actor.generation_id, 0))))
    says_all = epoch == 0 or "full" in names_of(words)
    version = stage.version("ConsumerGroupHeartbeat", 1, options)
    if "regex" in options:
        version = 1
    data = bodies.consumer_group_heartbeat(
        version,
        bodies.Identity(
            group_id=stage.group,
            member_id=_text(options.get("id", actor.member_id or words[0].partition(":")[0])) or "",
            instance_id=_text(options["i"]) if "i" in options else actor.instance_id,
            generation_id=epoch,
        ),
        subscription=(_names(actor, options, says_all=says_all), _text(options.get("regex", "-"))),
        owned=_owned(stage, actor, options, epoch, says_all=says_all),
        rebalance_timeout_ms=_timeout(options, says_all=says_all),
        wishes=(_text(options.get("rack", "-")), _text(options.get("assignor", "-"))),
    )
    return stage.call(words[0], "ConsumerGroupHeartbeat", version, data, options)


def _need_groups(stage: Stage) -> None:
    """Continue only if the broker of the script has consumer groups and tells ids of topics.

    Raises:
        Unsupported: it does not.
    """
    stage.ready()
    stage.need(Capability.CONSUMER_GROUPS)
    stage.learn_topics()


def _text(word: str) -> str | None:
    if word == "-":
        return None
    return {"none": "", "blank": _BLANK}.get(word, word)


def _timeout(options: Words, *, says_all: bool) -> int:
    return int(options.get("rebalance", _REBALANCE_TIMEOUT_MS if says_all else -1))


def _names(actor: Actor, options: Words, *, says_all: bool) -> list[str] | None:
    """Return the topics that a member names: its own wherever it says all but an expression."""
    if "names" in options:
        word = options["names"]
        if word == "-":
            return None
        actor.names = () if word == "none" else tuple(word.split(","))
        return list(actor.names)
    return list(actor.names) if says_all and "regex" not in options else None


def _owned(
    stage: Stage, actor: Actor, options: Words, epoch: int, *, says_all: bool
) -> dict[str, list[int]] | None:
    """Return the partitions that a member reports: none when it joins."""
    word = options.get("own", "none" if epoch == 0 else "all" if says_all else "-")
    if word == "-":
        return None
    found = partitions_of(actor.holds if word == "all" else word)
    return {stage.topic_id(topic): partitions for topic, partitions in found.items()}


def settled(stage: Stage, words: list[str]) -> None:
    """`settled A B:i2 [names= assignor=]`: members join, and heartbeat until nothing changes."""
    options = [word for word in words if "=" in word]
    stage.ready()
    labels = names_of(words)
    for label in labels:
        stage.observe(beat(stage, [label, *options]))
    for _ in range(_ROUNDS):
        for label in labels:
            stage.observe(beat(stage, [label.partition(":")[0], "own=all"]))


def inspect(stage: Stage, words: list[str]) -> Outcome:
    """`inspect [g1 g2] [v=1]`: a ConsumerGroupDescribe of the script's group, or of others."""
    _need_groups(stage)
    options = options_of(words)
    version = stage.version("ConsumerGroupDescribe", 1, options)
    data = bodies.describe_new_groups(names_of(words) or [stage.group])
    return stage.call("inspect", "ConsumerGroupDescribe", version, data, options)


class Case(Struct, frozen=True):
    """One way to check a requirement: a script.

    Args:
        case_id: Id of the requirement; after a dot the name of a variant.
        title: The requirement in one sentence.
        script: Lines of the script.
    """

    case_id: str
    title: str
    requirement: Requirement
    script: tuple[str, ...] = ()

    def lines_of(self, profile: str) -> list[str]:
        """Return the lines of the script that are for a profile, without their brackets."""
        lines = []
        for line in self.script:
            whom, bracket, rest = line.removeprefix("[").partition("]")
            if not line.startswith("["):
                lines.append(line)
            elif bracket and _is_for(profile, whom.split()):
                lines.append(rest)
        return lines

    def play(
        self, target: Target, profile: str, *, trace: bool = False, at_version: int | None = None
    ) -> tuple[str, ...]:
        """Play it on a broker of its own; return the transcript of requests and effects.

        Args:
            target: Target to play it on.
            profile: Profile whose behaviour is required.
            trace: Whether to trace a target that can be traced.
            at_version: Version of every request that names none; None takes the script's.

        Raises:
            CaseFailed: the target does not behave as required.
            CaseBroken: the case or the target broke off.
            Unsupported: the target lacks something that the script needs.
        """
        stage = Stage(
            target,
            profile,
            trace=trace,
            switches=self.requirement.switches,
            at_version=at_version,
        )
        for line in self.lines_of(profile):
            before = len(stage.transcript)
            try:
                _run(stage, line)
            except CaseFailed as failed:
                told = failed.transcript[-1] if len(failed.transcript) > before else ""
                came, wanted = told.partition(" | ")[2], " ".join(line.split())
                raise CaseFailed(failed.problem, failed.transcript, wanted, came) from None
            except (Unsupported, DataError):
                raise
            except MalformedAnswer as malformed:
                at = " ".join(line.split())
                raise CaseFailed(str(malformed), tuple(stage.transcript), at) from malformed
            except (CoordinatorSimError, *BREAKS) as broken:
                told, at = f"{type(broken).__name__}: {broken}", " ".join(line.split())
                raise CaseBroken(told, tuple(stage.transcript), at) from broken
        if stage.unshown:
            raise Unsupported(f"{stage.unshown}; all that is shown is as required")
        return tuple(stage.transcript)


def _is_for(profile: str, words: list[str]) -> bool:
    """Whether the words name the profile, or letters among which is that of its family."""
    return profile in words or any(family_of(profile) in word for word in words)


_ACTIONS: Final[dict[str, Callable[[Stage, list[str]], Outcome]]] = {
    "topic": broker.topic,
    "cluster": broker.cluster,
    "wait": broker.wait,
    "hold": broker.hold,
    "release": broker.release,
    "fail": broker.fail,
    "append": broker.append,
    "marker": broker.marker,
    "startup": broker.startup,
    "shutdown": broker.shutdown,
    "resign": broker.resign,
    "elect": broker.elect,
    "load": broker.load,
    "force": broker.force,
    "compact": broker.compact,
    "join": requests.join,
    "sync": requests.sync,
    "heartbeat": requests.heartbeat,
    "leave": requests.leave,
    "commit": requests.commit,
    "txn": requests.commit_in_transaction,
    "fetch": requests.fetch,
    "erase": requests.erase,
    "describe": requests.describe,
    "list": requests.list_groups,
    "delete": requests.delete_groups,
    "find": requests.find,
    "beat": beat,
    "inspect": inspect,
    "share": share_requests.share,
    "shares": share_requests.shares,
    "sharefetch": share_requests.sharefetch,
    "acknowledge": share_requests.acknowledge,
    "offsets": share_requests.offsets,
    "alter": share_requests.alter,
    "forget": share_requests.forget,
    "configure": configure,
    "produce": produce,
    "enlist": enlist,
    "end": end,
    "stream": streams_requests.stream,
    "streams": streams_requests.streams,
}
_OTHERS: Final[dict[str, Callable[[Stage, list[str]], None]]] = {
    "broker": broker.broker,
    "group": broker.switch_group,
    "completing": broker.completing,
    "stable": broker.stable,
    "settled": settled,
    "sharing": share_requests.sharing,
    "begin": begin,
    "running": streams_requests.running,
    "state": broker.state,
    "log": broker.log,
    "partition": broker.partition,
    "stored": broker.stored,
    "transition": broker.transition,
}


_PREPARING: Final = frozenset(
    {"broker", "group", "completing", "stable", "settled", "sharing", "running", "begin"}
)
"""Commands whose answers no transcript shows, so that it shows the command alone."""


def _run(stage: Stage, line: str) -> None:
    """Run one line and compare the answers.

    Raises:
        CaseFailed: the answers differ.
        Unsupported: the target lacks something that the line needs.
    """
    command, bar, wanted = line.partition("|")
    name, *words = command.split()
    if name in _PREPARING:
        stage.transcript.append(command.strip())
    if name == "--":
        stage.records.clear()
    elif name in _OTHERS:
        _OTHERS[name](stage, words)
    else:
        stage.expect_answers(command, wanted if bar else None, _ACTIONS[name](stage, words))


def read_cases(area: str, text: str) -> tuple[Case, ...]:
    """Return the cases of a text in the form above, in order.

    Raises:
        ConfigError: a case comes before any requirement, or its first `@` line is unreadable.
    """
    cases: list[Case] = []
    for line in filter(None, text.splitlines()):
        if line[0] != " ":
            case_id, title = line.split(maxsplit=1)
            cases.append(Case(case_id, title, _inherited(area, case_id, title, cases)))
            continue
        last, stripped = cases.pop(), line.strip()
        if stripped.startswith("@"):
            requirement = _described(last.requirement, stripped[1:].split())
            cases.append(replace(last, requirement=requirement))
        else:
            cases.append(replace(last, script=(*last.script, stripped)))
    for case in cases:
        if not case.requirement.families:
            raise ConfigError(f"{case.case_id}: wants an `@` line with families and level")
    return tuple(cases)


def _inherited(area: str, case_id: str, title: str, before: list[Case]) -> Requirement:
    """Return the requirement above a variant; any other case gets a new, undescribed one."""
    base, dot, _ = case_id.partition(".")
    if dot and before and before[-1].requirement.requirement_id == base:
        return before[-1].requirement
    return Requirement(
        requirement_id=case_id,
        title=title,
        area=area,
        families="",
        level=Level.MODEL,
        sources=(),
    )


def _described(requirement: Requirement, words: list[str]) -> Requirement:
    """Return the requirement with the properties of one `@` line."""
    if requirement.families and words[0] not in _FAMILY_WORDS:
        return replace(requirement, sources=(*requirement.sources, " ".join(words)))
    options = options_of(words[2:])
    return replace(
        requirement,
        families=words[0],
        level=Level(words[1]),
        since=options.get("since", ""),
        until=options.get("until", ""),
        switches=tuple(filter(None, options.get("switches", "").split(","))),
        verified_on=_span(options.get("seen", "")),
        is_quirk="quirk" in names_of(words[2:]),
    )


_FAMILY_WORDS: Final = ("L", "S", "J", "LS", "SJ", "LSJ")


def _span(text: str) -> tuple[str, ...]:
    """Return the releases of `2.8-4.4`, or of `3.9,4.4`; `4.2.2` is a release itself."""
    if not text:
        return ()
    known = list(RELEASES)
    if "," in text or text in known:
        return tuple(RELEASES.get(name, name) for name in text.split(","))
    first, _, last = text.partition("-")
    return tuple(RELEASES[name] for name in known[known.index(first) : known.index(last) + 1])
