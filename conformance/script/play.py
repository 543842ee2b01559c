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
keep it for these families or profiles. Times are milliseconds. `requests`, `consumer_requests` and
`broker` hold the commands.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError, CoordinatorSimError, DataError
from coordinator_sim_conformance.requirements import RELEASES, Level, Requirement, family_of
from coordinator_sim_conformance.script import (
    broker,
    consumer_requests,
    record_requests,
    requests,
    share_requests,
    streams_requests,
)
from coordinator_sim_conformance.script.comparing import names_of, options_of
from coordinator_sim_conformance.script.stage import BREAKS, CaseBroken, CaseFailed, Stage
from coordinator_sim_conformance.targets.target import MalformedAnswer, Outcome, Target, Unsupported


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
    "beat": consumer_requests.beat,
    "inspect": consumer_requests.inspect,
    "share": share_requests.share,
    "shares": share_requests.shares,
    "sharefetch": share_requests.sharefetch,
    "acknowledge": share_requests.acknowledge,
    "offsets": share_requests.offsets,
    "alter": share_requests.alter,
    "forget": share_requests.forget,
    "configure": record_requests.configure,
    "produce": record_requests.produce,
    "enlist": record_requests.enlist,
    "end": record_requests.end,
    "stream": streams_requests.stream,
    "streams": streams_requests.streams,
}
_OTHERS: Final[dict[str, Callable[[Stage, list[str]], None]]] = {
    "broker": broker.broker,
    "group": broker.switch_group,
    "completing": broker.completing,
    "stable": broker.stable,
    "settled": consumer_requests.settled,
    "sharing": share_requests.sharing,
    "begin": record_requests.begin,
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
