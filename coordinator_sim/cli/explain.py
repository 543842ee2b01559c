"""`explain`: the causal story of one group's rebalances, or the groups of a trace, worst first."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_sim.cli.window import (
    ANY_TIME,
    WindowOptions,
    as_document,
    echo_window,
    takes_window,
    window_in,
)
from coordinator_sim.cli.wording import counted, duration, listed
from coordinator_sim.trace.window import ALWAYS, clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coordinator_sim.replay.causes import GroupStory, RebalanceStory
    from coordinator_sim.replay.client_view import ClientView
    from coordinator_sim.replay.share_records import ShareRecords
    from coordinator_sim.trace.group_snapshots import Snapshot

_MOST_SPANS: Final = 3
_REPEATS_THE_JOIN: Final = (
    "need to re-join with the given member-id",
    "rebalance failed due to Mem",
)
_UUID: Final = re.compile(r"-([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The random part of a member id; its first eight digits tell members apart."""
_OUTCOMES: Final = {
    "STABLE": "stable",
    "EMPTY": "the group is empty",
    "NO_SYNC": "the leader never assigned: the generation came to nothing",
    "SUPERSEDED": "another rebalance began before it ended",
    "COORDINATOR_MOVED": "the coordinator moved to another broker",
    "OPEN": "the trace ends before it does",
}
_OUTCOMES_OF_EPOCHS: Final = {
    "SUPERSEDED": "the next epoch began before all members reached it",
    "OPEN": "the trace does not show when all members reached it",
}


@takes_window
def explain(
    trace: Annotated[
        Path,
        typer.Argument(help="A trace: the directory of a run or an import.", metavar="TRACE"),
    ],
    group: Annotated[
        str | None,
        typer.Argument(
            help="The group to explain; without it, the groups are listed.", metavar="[GROUP]"
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of the story.")
    ] = False,
    window_options: WindowOptions = ANY_TIME,
) -> None:
    """Tell why a group rebalanced each time, what followed, and what it adds up to.

    Without a group, list the groups of the trace, those with most rebalances first.

    With a window of time, only rebalances that began in it are told and counted; their numbers stay
    those of the whole trace, and earlier ones may be their cause.

    Example: coordinator-sim explain out/incident orders-service --last 12h
    """
    import msgspec

    from coordinator_sim.replay.causes import explain_group, group_named
    from coordinator_sim.replay.client_view import client_views
    from coordinator_sim.runs.run_directory import read_run
    from coordinator_sim.trace.group_snapshots import snapshots_in
    from coordinator_sim.trace.history import coordinator_events, group_lines

    run = read_run(trace)
    window = window_in(run.info, window_options)
    all_events = list(run.events())
    events = coordinator_events(all_events, run.info.source)
    groups = group_lines(events)
    views = client_views(all_events, run.info.source, window)
    seen = snapshots_in(event for event in all_events if window.holds(event.ts_us))
    if group is None:
        from coordinator_sim.cli.group_list import print_groups

        stories = [explain_group(name, lines, [], window) for name, lines in groups.items()]
        if not json:
            echo_window(run.info, window)
        more = as_document(window) if json else None
        print_groups(trace, stories, views, window_options.words, seen=seen, more=more)
        return
    alone = [view for view in views if view.group_id == group]
    if alone or (group in seen and group not in groups):
        echo_alone(alone, seen.get(group, []), is_json=json)
        return
    lines = groups[group_named(group, [*groups, *(view.group_id for view in views)])]
    others = [event for event in events if event.group_id is None]
    story = explain_group(group, lines, others, window)
    if json:
        own = {"snapshots": seen[group]} if group in seen else {}
        document = msgspec.to_builtins(story) | own | as_document(window)
        typer.echo(msgspec.json.encode(document).decode())
        return
    echo_window(run.info, window)
    where = "this trace" if window == ALWAYS else "this time"
    for line in [*told(story, where), *snapshot_lines(seen.get(group, []))]:
        typer.echo(line)


def echo_alone(views: "list[ClientView]", snapshots: "list[Snapshot]", *, is_json: bool) -> None:
    """Print what is known of a group from its clients or snapshots alone."""
    import msgspec

    if is_json:
        known = {"clients": views, "snapshots": snapshots}
        document = {name: each for name, each in known.items() if each}
        typer.echo(msgspec.json.encode(document).decode())
        return
    lines = [clients_alone(views)] if views else []
    typer.echo("\n".join([*lines, *snapshot_lines(snapshots)]))


def snapshot_lines(snapshots: "list[Snapshot]") -> list[str]:
    """What `kafka-consumer-groups` saw: the first, the last, and those with other owners."""
    from msgspec.structs import replace

    from coordinator_sim.trace.group_snapshots import moved

    if not snapshots:
        return []
    lines = [f"Seen by kafka-consumer-groups {counted(len(snapshots), 'time')}:"]
    before = snapshots[0]
    free = 0
    for each in snapshots:
        count = moved(before, each)
        if count:
            lines.append(
                f"    between {clock(before.at_ms)} and {clock(each.at_ms)} "
                f"{counted(count, 'partition')} got another owner; when, and how long members "
                "paused, no snapshot tells"
            )
        if count or free < each.free or each in (snapshots[0], snapshots[-1]):
            lines.append(f"    {clock(each.at_ms)}: {', '.join(_parts_of(each))}")
        if each.owners:
            free = each.free
            known = {name: owner for name, owner in each.owners.items() if owner}
            before = replace(each, owners=before.owners | known)
    return lines


def _parts_of(each: "Snapshot") -> "Iterator[str]":
    if each.members is not None:
        yield counted(each.members, "member")
    if each.lag is not None:
        yield f"lag {each.lag:,}"
    if each.free:
        yield f"{counted(each.free, 'partition')} had no owner"
    if each.strategy:
        yield each.strategy
    if each.epoch is not None:
        yield f"epoch {each.epoch}"


def told(story: "GroupStory", where: str = "this trace") -> list[str]:
    """The story, line by line; `where` is what it covers."""
    records = [] if story.records is None else ["", *of_records(story.records)]
    if not story.rebalances:
        return [f"Group {story.group_id} does not rebalance in {where}.", *records]
    lines = [headline(story)]
    for rebalance in story.rebalances:
        lines.append("")
        lines.extend(paragraph(rebalance))
    lines.append("")
    lines.extend(closing(story))
    return [*lines, *records]


def clients_alone(views: "list[ClientView]") -> str:
    """The clients of a group without a coordinator's log, as text."""
    title = f"Group {views[0].group_id}: told by {counted(len(views), 'client')} alone."
    lines = [f"{title} Who began its rebalances is in its coordinator's log: ingest it, too."]
    for view in views:
        often = "" if view.every_ms is None else f", once every {duration(view.every_ms)}"
        reached = view.generations
        several = ", several processes" if view.is_shared else ""
        lines += [
            "",
            f"{view.client}{several}: joined {counted(len(view.joins_ms), 'time')}{often}, "
            f"from {clock(view.first_ms)} to {clock(view.last_ms)}"
            + (f", generations {reached[0]} to {reached[1]}" if reached else ""),
            *(
                f"    refused {counted(count, 'time')}: {what}"
                for what, count in view.refused.items()
            ),
            *(f"    {counted(count, 'time')}: {what}" for what, count in view.reasons.items()),
        ]
    return "\n".join([*lines, "", f"Lines: {listed(views[0].lines)}"])


def of_records(records: "ShareRecords") -> list[str]:
    """What became of a share group's records."""
    lines = [
        f"Deliveries: {records.deliveries:,}, {records.again:,} of them after a record's first one"
    ]
    if records.rejected:
        lines.append(f"Rejected and archived: {counted(records.rejected, 'record')}")
    if records.used_up:
        lines.append(
            f"Archived after {records.limit} deliveries, the limit: "
            f"{counted(len(records.used_up), 'record')}, {listed(records.used_up)}; each held its "
            f"partition's start offset for {duration(records.held_us // 1000)} at most"
        )
    lines += [
        f"Locks that ran out on {each.client}: {counted(each.records, 'record')}; {each.late:,} "
        "acknowledged too late, the others never, after they had been locked for "
        f"{each.silent_us / 1e6:,.1f} record-seconds"
        for each in records.lost_locks
    ]
    return lines


def headline(story: "GroupStory") -> str:
    """How many rebalances in what time."""
    return (
        f"Group {story.group_id}: {counted(len(story.rebalances), 'rebalance')} from "
        f"{clock(story.first_ms)} to {clock(story.last_ms)}{generations_reached(story)}"
    )


def generations_reached(story: "GroupStory") -> str:
    """From which generation to which; a group that was made anew counts anew."""
    spans: list[tuple[int, int]] = []
    for rebalance in story.rebalances:
        reached = rebalance.generation
        if reached is None:
            continue
        if spans and reached >= spans[-1][1]:
            spans[-1] = (spans[-1][0], reached)
        else:
            spans.append((reached, reached))
    if not spans:
        return ""
    others = len(spans) - _MOST_SPANS
    more = f", and {counted(others, 'time')} more" if others > 0 else ""
    shown = ", then ".join(f"{first} to {last}" for first, last in spans[:_MOST_SPANS])
    what = "epochs" if all(each.is_epoch for each in story.rebalances) else "generations"
    return f", {what} {shown}{more}"


def paragraph(rebalance: "RebalanceStory") -> list[str]:
    """One rebalance: its cause, its course, its end."""
    when = "before the trace" if rebalance.start_ms is None else clock(rebalance.start_ms)
    title = f"#{rebalance.number}  {when}  {generations(rebalance)}  {rebalance.reason.value}"
    if rebalance.follows is not None:
        title += f"  (follow-up of #{rebalance.follows})"
    lines = [title]
    if rebalance.new_coordinator:
        lines.append(f"    begins anew: {rebalance.new_coordinator}")
    lines.extend(f"    before: {text}" for text in rebalance.before)
    if rebalance.because:
        lines.append(f"    why: {rebalance.because}")
    if rebalance.follows is None and rebalance.root != rebalance.number:
        sure = f"{100 * rebalance.confidence:.0f} % sure"
        lines.append(f"    comes from: #{rebalance.root}, where its process went ({sure})")
    if rebalance.first_cause:
        where = Path(rebalance.first_cause_at or "").name
        lines.append(f"    first cause: {rebalance.first_cause}, {where}")
    elif rebalance.client_reason and not rebalance.client_reason.startswith(_REPEATS_THE_JOIN):
        lines.append(f'    the client said: "{rebalance.client_reason}"')
    named = rebalance.caused_by if rebalance.because else ()
    others = tuple(name for name in rebalance.joined if name not in named)
    if others:
        lines.append(f"    joined{' too' if named else ''}: {listed(others)}")
    gone = tuple(text for text in rebalance.gone if text.split()[0] not in named)
    if gone:
        lines.append(f"    gone: {listed(gone)}")
    lines.append(f"    {course(rebalance)}")
    return [shortened(line) for line in lines]


def shortened(line: str) -> str:
    """A line with the ids of its members cut down to the first part of their UUID."""
    return _UUID.sub(r"-\1", line)


def generations(rebalance: "RebalanceStory") -> str:
    """The generation that ended and the one that began."""
    old = "?" if rebalance.old_generation is None else rebalance.old_generation
    new = "?" if rebalance.generation is None else rebalance.generation
    return f"{'epoch' if rebalance.is_epoch else 'generation'} {old} -> {new}"


def course(rebalance: "RebalanceStory") -> str:
    """The course of a rebalance in one line: phases, members, assignor, leader, outcome."""
    parts = []
    about = "" if rebalance.is_exact else "about "
    is_epoch = rebalance.is_epoch
    if rebalance.join_ms is not None:
        phase = "target after" if is_epoch else "join phase"
        parts.append(f"{phase} {about}{duration(rebalance.join_ms)}")
    if is_epoch and rebalance.initial_ms:
        parts.append(f"of these {duration(rebalance.initial_ms)} the delay of a first target")
    if rebalance.dead_ms:
        dead = duration(rebalance.dead_ms)
        parts.append(f"of these {about}{dead} for members that were then removed")
    if rebalance.members:
        statics = f" ({rebalance.static_members} static)" if rebalance.static_members else ""
        parts.append(f"{counted(rebalance.members, 'member')}{statics}")
    if rebalance.protocol_name:
        parts.append(f"assignor {rebalance.protocol_name}")
    if rebalance.leader_id:
        parts.append(f"led by {rebalance.leader_id}")
    if rebalance.sync_ms is not None:
        phase = "reached by all after" if is_epoch else "assigned after"
        parts.append(f"{phase} {about}{duration(rebalance.sync_ms)}")
    outcomes = _OUTCOMES | _OUTCOMES_OF_EPOCHS if is_epoch else _OUTCOMES
    outcome = outcomes[rebalance.outcome.value]
    if rebalance.length_ms is not None:
        outcome += f" after {about}{duration(rebalance.length_ms)}"
    if not rebalance.is_exact:
        outcome += " (not all its times are measured)"
    return "; ".join([*parts, outcome])


def closing(story: "GroupStory") -> list[str]:
    """What the rebalances add up to."""
    reasons = ", ".join(f"{name} {count}" for name, count in story.reasons.items())
    outcomes = ", ".join(f"{name} {count}" for name, count in story.outcomes.items())
    lines = [f"Causes: {reasons}", f"Outcomes: {outcomes}"]
    if story.follow_ups:
        own = len(story.rebalances) - story.follow_ups
        lines.append(
            f"{counted(story.follow_ups, 'follow-up')} of cooperative rebalancing, so "
            f"{counted(own, 'rebalance')} with a cause of their own"
        )
    lines.append(rebalancing(story))
    if story.longest is not None:
        longest = next(each for each in story.rebalances if each.number == story.longest)
        lines.append(f"Longest: #{longest.number}, {duration(longest.length_ms or 0)}")
    lines.append(
        f"{counted(story.disturbances, 'disturbance')} (rebalances less than 30 s apart are one)"
        f"{settling(story)}{going_on(story)}"
    )
    return lines


def rebalancing(story: "GroupStory") -> str:
    """A line with the group's total rebalancing time, and the rebalances it leaves out."""
    about = "" if story.is_exact else "about "
    span_ms = story.last_ms - story.first_ms
    share = f" ({100 * story.rebalancing_ms / span_ms:.1f} % of the time)" if span_ms else ""
    if story.open_count == len(story.rebalances):
        return "Rebalancing time: not known, no rebalance has both its start and its end here"
    is_epochs = all(each.is_epoch for each in story.rebalances)
    what = "On the way to a target" if is_epochs else "Rebalancing"
    text = f"{what} for {about}{duration(story.rebalancing_ms)}{share}"
    if story.open_count:
        text += f", without {counted(story.open_count, 'rebalance')} whose start or end is not here"
    return text


def going_on(story: "GroupStory") -> str:
    """Which disturbance began before the time that is told; empty for none."""
    first = story.rebalances[0]
    began_before = first.chain != first.number
    return f"; one more had begun before with #{first.chain}" if began_before else ""


def settling(story: "GroupStory") -> str:
    """How long the longest disturbance took to settle, and how many never did."""
    text = ""
    if story.convergence_ms is not None:
        text = f"; the longest took {duration(story.convergence_ms)} to settle"
    if story.unsettled:
        text += f"; {story.unsettled} never settled in this trace"
    return text
