"""`shape`: a scenario of one's own topology, in one line, from a trace or from a live cluster."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from coordinator_sim.cli.arguments import (
    DownOption,
    ProcessingOption,
    ProcessingTimeOption,
    parse_settings,
    parse_variety,
)
from coordinator_sim.cli.own_assignors import (
    AssignorFromOption,
    AssignorJavaOption,
    AssignorProcessOption,
    register_given,
)
from coordinator_sim.errors import ConfigError, DataError, needing
from coordinator_sim.sim.scenario.lengths import length_text, parse_length

if TYPE_CHECKING:
    from coordinator_sim.sim.scenario.happenings import RestartMember
    from coordinator_sim.sim.scenario.scenario import Scenario
    from coordinator_sim.sim.scenario.topology import Deploys, Topology
    from coordinator_sim.sim.scenario.variety import Variety
    from coordinator_sim.trace.group_shape import SeenGroup

DEFAULT_ASSIGNORS = "range,cooperative-sticky"
MEMBERSHIPS = ("dynamic", "static")
LEAST_CALM_MS = 10_000
"""Two automatic commits, and three heartbeats: a group has then forgotten what happened before."""


class _Asked(Struct, frozen=True, kw_only=True):
    """The options that both an own size and a seen group may be given; empty is not given."""

    name: str
    assignors: str
    membership: str
    deploys: str
    pace: str
    down: str
    crashes: int
    for_: str
    records_per_s: int


TopicsOption = Annotated[
    str,
    typer.Option(
        help="Number of topics, or each with its partitions.", metavar="N|NAME=PARTITIONS,..."
    ),
]
PartitionsOption = Annotated[
    int | None, typer.Option(help="Partitions of all topics together, spread evenly.")
]
DeploysOption = Annotated[
    str,
    typer.Option(
        help="Rhythm of rolling deploys: hourly, daily, weekly, a length such as 36h, or none.",
        metavar="RHYTHM",
    ),
]
ForOption = Annotated[str, typer.Option("--for", help="Virtual time of the run.", metavar="LENGTH")]
PaceOption = Annotated[
    str,
    typer.Option(
        help="From one restart of a deploy to the next; 30s by default.", metavar="LENGTH"
    ),
]
AssignorOption = Annotated[
    str, typer.Option(help="Assignors in order of preference.", metavar="NAME,...")
]
MembershipOption = Annotated[
    str, typer.Option(help="dynamic, or static: members have a group.instance.id.")
]
RecordsPerSOption = Annotated[
    int, typer.Option(min=0, help="Records produced to each partition a second.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting by Kafka's name; may be repeated."),
]
CalmOption = Annotated[
    str,
    typer.Option(
        help="Calm time lived through after what happens, and before what happens next; the rest "
        "is left out. none lives through all of it.",
        metavar="LENGTH",
    ),
]
LikeOption = Annotated[
    Path | None,
    typer.Option(help="Take members, topics and restarts from a trace.", metavar="TRACE"),
]
BootstrapOption = Annotated[
    str, typer.Option(help="Take members and topics from a cluster.", metavar="HOST:PORT")
]
ManifestOption = Annotated[
    Path | None,
    typer.Option(
        help="Take workloads, autoscalers and settings from Kubernetes manifests.", metavar="YAML"
    ),
]
RecordOption = Annotated[
    str,
    typer.Option(
        help="Time to process a record, for --manifest, instead of --processing.", metavar="LENGTH"
    ),
]
OutOption = Annotated[
    Path | None, typer.Option(help="Write the scenario to this .json file.", metavar="FILE")
]


def shape(
    topics: TopicsOption = "",
    partitions: PartitionsOption = None,
    consumers: Annotated[int | None, typer.Option(help="Members of the group.")] = None,
    deploys: DeploysOption = "",
    for_: ForOption = "",
    pace: PaceOption = "",
    down: DownOption = "",
    crashes: Annotated[int, typer.Option(help="Members that are killed, over the run.")] = 0,
    assignor: AssignorOption = "",
    membership: MembershipOption = "",
    records_per_s: RecordsPerSOption = 10,
    set_: SetOption = None,
    processing: ProcessingOption = "",
    processing_ms: ProcessingTimeOption = "",
    calm: CalmOption = "none",
    like: LikeOption = None,
    bootstrap: BootstrapOption = "",
    manifest: ManifestOption = None,
    per_record: RecordOption = "",
    group: Annotated[str, typer.Option(help="The group of --like or --bootstrap.")] = "",
    name: Annotated[str, typer.Option(help="Name of the scenario.")] = "",
    assignor_from: AssignorFromOption = None,
    assignor_process: AssignorProcessOption = None,
    assignor_java: AssignorJavaOption = None,
    out: OutOption = None,
) -> None:
    """Describe your own topology in one line: prints a scenario that run, sweep and show take.

    Each seed draws a world of it: starts, processing times, pauses and latency.

    Example: coordinator-sim shape --topics 12 --partitions 500 --consumers 37 --deploys weekly
    --for 30d --out mine.json
    """
    import msgspec

    from coordinator_sim.sim.scenario.files import scenario_to_json
    from coordinator_sim.sim.scenario.scenario import with_settings
    from coordinator_sim.sim.scenario.topology import shaped

    register_given(assignor_from, assignor_process, assignor_java)
    asked = _Asked(
        name=name or (out.stem if out is not None else "shape"),
        assignors=assignor,
        membership=membership,
        deploys=deploys,
        pace=pace or "30s",
        down=down or "8s",
        crashes=crashes,
        for_=for_,
        records_per_s=records_per_s,
    )
    _check_file(out)
    if manifest is not None:
        _check_alone(like, bootstrap, group, consumers, crashes, membership, pace, down)
        _check_work(per_record, processing + processing_ms)
        scenario = _deployed(manifest, topics, partitions, per_record, asked, err=out is None)
    else:
        seen = _seen(like, bootstrap, group, per_record)
        make = _sized if seen is None else partial(_like, seen)
        scenario = shaped(make(topics, partitions, consumers, asked))
    scenario = msgspec.structs.replace(scenario, variety=_variety(processing, processing_ms, calm))
    scenario = with_settings(scenario, parse_settings(set_ or []))
    text = scenario_to_json(scenario)
    if out is None:
        typer.echo(text.decode(), nl=False)
        return
    out.write_bytes(text)
    typer.echo(f"{out}: {scenario.title}")
    typer.echo(f"Run it:  coordinator-sim run {out}    Compare:  coordinator-sim sweep {out}")


def _variety(processing: str, processing_ms: str, calm: str) -> "Variety":
    import msgspec

    variety = parse_variety(processing, processing_ms)
    if calm == "none":
        return variety
    calm_ms = parse_length("--calm", calm, low_ms=LEAST_CALM_MS)
    return msgspec.structs.replace(variety, calm_ms=calm_ms)


def _check_file(out: Path | None) -> None:
    if out is not None and out.suffix != ".json":
        raise ConfigError(f"--out {out}: a scenario's file ends in .json; rename it")


def _check_alone(*others: object) -> None:
    """Refuse options that say what manifests say."""
    if any(others):
        raise ConfigError(
            "--manifest says who the members are: leave out --like, --bootstrap, --group, "
            "--consumers, --crashes, --membership, --pace and --down"
        )


def _check_work(per_record: str, drawn: str) -> None:
    if per_record and drawn:
        raise ConfigError(
            f"--per-record {per_record}: excludes --processing and --processing-ms; leave one out"
        )


def _seen(like: Path | None, bootstrap: str, group: str, per_record: str) -> "SeenGroup | None":
    """The group's shape from a trace or a live cluster; None if neither is named."""
    if per_record:
        raise ConfigError(f"--per-record {per_record}: is for --manifest; use --processing-ms")
    if like is not None and bootstrap:
        raise ConfigError("--like and --bootstrap exclude each other: leave one out")
    if like is None and not bootstrap:
        if group:
            raise ConfigError(f"--group {group}: of which trace or cluster? add --like TRACE")
        return None
    if not group:
        raise ConfigError("--group is missing: name the group to take the shape from")
    return _of_trace(like, group) if like is not None else _of_cluster(bootstrap, group)


def _of_trace(trace: Path, group: str) -> "SeenGroup":
    import msgspec

    from coordinator_sim.runs.run_directory import read_run
    from coordinator_sim.trace.group_shape import seen_group, topics_of

    run = read_run(trace)
    seen = seen_group(run.events(), group)
    if seen is None:
        raise DataError(
            f"{trace} tells of no members of a group {group!r}; "
            f"coordinator-sim explain {trace} lists its groups"
        )
    lists = {row.resource_list_id for row in run.generations() if row.group_id == group}
    topics = topics_of(
        resource
        for row in run.resources()
        if row.resource_list_id in lists
        for resource in row.resources
        if resource.startswith("p:")
    )
    return msgspec.structs.replace(seen, topics=topics)


def _of_cluster(bootstrap: str, group: str) -> "SeenGroup":
    with needing("clients", "--bootstrap"):
        from coordinator_sim.live.seen_groups import described_group
    return described_group(bootstrap, group)


def _sized(topics: str, partitions: int | None, consumers: int | None, asked: _Asked) -> "Topology":
    """The topology that the command line gives alone."""
    from coordinator_sim.sim.scenario.topology import Topology, named_members

    if consumers is None:
        raise ConfigError("--consumers is missing: how many members has the group?")
    members = named_members(consumers, static=_is_static(asked))
    read = _topics(topics, partitions)
    duration_ms = parse_length("--for", asked.for_ or "1h", low_ms=60_000)
    restarts = _rhythm(list(members), asked, duration_ms)
    what = _size(len(members), read)
    return Topology(
        name=asked.name,
        title=f"{what}; {_pace_words(asked)}, {length_text(duration_ms)}",
        story=f"{what}. {_story(asked, len(restarts))}",
        group_id="orders-app",
        topics=read,
        members=members,
        assignors=_assignors(asked.assignors or DEFAULT_ASSIGNORS),
        restarts=restarts,
        duration_ms=duration_ms,
        records_per_s=asked.records_per_s,
    )


def _like(
    seen: "SeenGroup",
    topics: str,
    partitions: int | None,
    consumers: int | None,
    asked: _Asked,
) -> "Topology":
    """The topology of a seen group, with what the command line says instead."""
    from coordinator_sim.sim.scenario.topology import (
        Topology,
        in_order,
        recorded_restarts,
    )

    if consumers is not None:
        raise ConfigError("--consumers: the trace or cluster says how many; leave it out")
    members = seen.members
    if asked.membership:
        static = _is_static(asked)
        members = {name: (own or name) if static else None for name, own in members.items()}
    if topics or partitions is not None:
        read = _topics(topics, partitions)
    elif seen.topics:
        read = seen.topics
    else:
        raise DataError(
            f"the trace holds no assignment of group {seen.group_id!r} (broker logs never do): "
            "add --topics and --partitions"
        )
    recorded, seen_ms = recorded_restarts(seen, parse_length("--down", asked.down))
    if asked.deploys or not recorded:
        duration_ms = parse_length("--for", asked.for_ or "1h", low_ms=60_000)
        restarts = _rhythm(list(members), asked, duration_ms)
        rhythm = _story(asked, len(restarts))
    else:
        duration_ms = parse_length("--for", asked.for_) if asked.for_ else seen_ms
        kept = [each for each in recorded if each.at_ms + each.down_ms < duration_ms]
        restarts = in_order(kept, _crashes(list(members), asked, duration_ms, kept))
        rhythm = f"{len(kept)} restarts at the instants of the recording."
    what = _size(len(members), read)
    return Topology(
        name=asked.name,
        title=f"Like {seen.group_id}: {what}; {len(restarts)} restarts, {length_text(duration_ms)}",
        story=f"{what}, as group {seen.group_id}. {rhythm}",
        group_id=seen.group_id,
        topics=read,
        members=members,
        assignors=_assignors(asked.assignors or seen.assignor or DEFAULT_ASSIGNORS),
        restarts=tuple(restarts),
        duration_ms=duration_ms,
        records_per_s=asked.records_per_s,
    )


def _deployed(
    manifest: Path,
    topics: str,
    partitions: int | None,
    per_record: str,
    options: _Asked,
    *,
    err: bool,
) -> "Scenario":
    """The scenario of manifests; prints what was read, ignored and assumed."""
    from coordinator_sim.cli.manifests import Manifests
    from coordinator_sim.sim.scenario.scenario import with_settings
    from coordinator_sim.sim.scenario.settings import STRATEGY
    from coordinator_sim.sim.scenario.topology import Topology, deployed
    from coordinator_sim.sim.scenario.work import PerRecord

    manifests = Manifests(manifest)
    is_rhythmic = options.deploys not in {"", "none"}
    scenario, assumed = deployed(
        Topology(
            name=options.name,
            title="",
            story=f"Workloads of {manifest.name}.",
            group_id="",
            topics=_topics(topics, partitions) if topics or partitions is not None else {},
            members={},
            assignors=_assignors(DEFAULT_ASSIGNORS),
            restarts=(),
            duration_ms=parse_length("--for", options.for_ or "1h", low_ms=60_000),
            records_per_s=options.records_per_s,
        ),
        manifests.workloads(),
        PerRecord(us=1_000 * parse_length("--per-record", per_record)) if per_record else None,
        parse_length("--deploys", options.deploys, low_ms=60_000) if is_rhythmic else 0,
    )
    if options.assignors:
        scenario = with_settings(scenario, {STRATEGY: options.assignors})
    if scenario.topics:
        work = f"{per_record} a record" if per_record else "polls as --processing-ms"
        assumed += [f"{options.records_per_s} records/s a partition", work, "automatic commits"]
    assumed.append("startup_ms, shutdown_ms")
    for what, fields in (("read", manifests.read), ("ignored", manifests.ignored)):
        found = "; ".join(f"{where} {', '.join(each)}" for where, each in fields.items())
        typer.echo(f"{what}: {found or 'nothing'}", err=err)
    typer.echo(f"assumed: {', '.join(assumed)}", err=err)
    return scenario


def _rhythm(members: list[str], asked: _Asked, duration_ms: int) -> "tuple[RestartMember, ...]":
    from coordinator_sim.sim.scenario.topology import deploy_restarts, in_order

    deploys = _deploys(asked)
    planned = () if deploys is None else deploy_restarts(members, deploys, duration_ms)
    return in_order(planned, _crashes(members, asked, duration_ms, planned))


def _crashes(
    members: list[str],
    asked: _Asked,
    duration_ms: int,
    planned: "list[RestartMember] | tuple[RestartMember, ...]",
) -> "tuple[RestartMember, ...]":
    from coordinator_sim.sim.scenario.topology import crash_restarts

    down_ms = parse_length("--down", asked.down)
    return crash_restarts(members, asked.crashes, duration_ms, down_ms=down_ms, planned=planned)


def _deploys(asked: _Asked) -> "Deploys | None":
    from coordinator_sim.sim.scenario.topology import Deploys

    if asked.deploys in {"", "none"}:
        return None
    return Deploys(
        every_ms=parse_length("--deploys", asked.deploys, low_ms=60_000),
        pace_ms=parse_length("--pace", asked.pace),
        down_ms=parse_length("--down", asked.down),
    )


def _topics(text: str, partitions: int | None) -> dict[str, int]:
    """The topics with their partitions: a number to spread over, or each with its own."""
    from coordinator_sim.kafka.java_numbers import java_int
    from coordinator_sim.sim.scenario.topology import spread_partitions

    if not text:
        raise ConfigError("--topics is missing: how many topics does the group read?")
    count = java_int(text, bits=32)
    if count is not None:
        if partitions is None:
            raise ConfigError("--partitions is missing: how many have the topics together?")
        return spread_partitions(count, partitions)
    found: dict[str, int] = {}
    for part in text.split(","):
        topic, equals, number = part.strip().partition("=")
        size = java_int(number, bits=32)
        if not equals or size is None:
            raise ConfigError(f"--topics {text!r}: wants a number, or orders=64,payments=12")
        if topic in found:
            raise ConfigError(f"--topics {text!r}: {topic} is there twice; leave one out")
        found[topic] = size
    if partitions is not None and partitions != sum(found.values()):
        raise ConfigError(
            f"--partitions {partitions}: the topics have {sum(found.values())} together; "
            "leave it out"
        )
    return found


def _is_static(asked: _Asked) -> bool:
    if asked.membership not in {"", *MEMBERSHIPS}:
        raise ConfigError(
            f"--membership {asked.membership!r}: must be one of {', '.join(MEMBERSHIPS)}"
        )
    return asked.membership == "static"


def _assignors(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _size(consumers: int, topics: dict[str, int]) -> str:
    partitions = sum(topics.values())
    members = "1 consumer" if consumers == 1 else f"{consumers:,} consumers"
    names = "1 topic" if len(topics) == 1 else f"{len(topics):,} topics"
    return f"{members} of {partitions:,} partitions in {names}"


def _pace_words(asked: _Asked) -> str:
    deploys = _deploys(asked)
    if deploys is None:
        return "no deploys"
    return f"a deploy every {length_text(deploys.every_ms)}"


def _story(asked: _Asked, restarts: int) -> str:
    deploys = _deploys(asked)
    crashed = f"{asked.crashes} members are killed" if asked.crashes else ""
    if deploys is None:
        return f"{crashed or 'Nothing is restarted'}."
    return (
        f"Each deploy stops the members one after another, {length_text(deploys.pace_ms)} apart, "
        f"each for {length_text(deploys.down_ms)}: {restarts - asked.crashes:,} restarts"
        + (f"; {crashed} between them." if crashed else ".")
    )
