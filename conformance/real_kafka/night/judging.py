"""How many of a night's rebalances get their true cause: from the watch, the broker, all logs.

A rebalance is of the last step of its group that was written down before it began.
"""

import re
import subprocess
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum, unique
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from coordinator_sim.errors import DataError
from coordinator_sim.replay.causes import RebalanceStory, explain_group
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.trace.history import coordinator_events, group_lines
from coordinator_sim_conformance.real_kafka.night.cluster import Taken
from coordinator_sim_conformance.real_kafka.night.story import Truth

_GONE: Final = {"left": "MEMBER_LEFT", "failed": "MEMBER_FAILED", "removed": "MEMBER_FAILED"}
_UNKNOWN: Final = "UNKNOWN"
_RANDOM_ID: Final = re.compile(r"[\w-]{22}")
"""The id of a member of the consumer or streams protocol: only its own log names the client."""
_NO_CAUSE: Final = "need to re-join with the given member-id"


@unique
class Verdict(Enum):
    """What an answer is worth.

    RIGHT: it has the true first cause, or says which rebalance it follows up, and that has it;
    UNKNOWN: it says that it does not know; VAGUE: what it says is true, and not the first cause;
    WRONG: it says something else.
    """

    RIGHT = "right"
    UNKNOWN = "not known"
    VAGUE = "vague"
    WRONG = "wrong"


def judge(folder: Path) -> dict[str, Counter[Verdict]]:
    """Ingest what a night left, judge all answers, and return the verdicts of each source.

    The list of all answers is in `answers.txt` of the folder afterwards.

    Raises:
        DataError: an import or an explanation failed; the message holds its end.
    """
    logs = folder / "logs"
    sources = {
        "watch alone": folder / "watch",
        "broker log alone": _ingested(folder, "broker", logs / "server.log"),
        "folder of logs": _ingested(folder, "all", logs),
    }
    steps: defaultdict[str, list[Taken]] = defaultdict(list)
    for line in (folder / "truth.jsonl").read_bytes().splitlines():
        step = msgspec.json.decode(line, type=Taken)
        steps[step.group].append(step)
    stories = {name: _stories(trace) for name, trace in sources.items()}
    counts = {name: Counter[Verdict]() for name in sources}
    lines: list[str] = []
    for group, own in steps.items():
        begun = stories["broker log alone"][group]
        for name, answered in stories.items():
            lines += ["", f"{group}, {name}"]
            answers = _with_times(answered.get(group, ()), begun)
            for verdict, step, answer in _judged(own, answers):
                counts[name][verdict] += 1
                lines.append(f"{verdict.value:<10} {step.action:<28} {_text(answer)}")
    (folder / "answers.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return counts


def table(counts: dict[str, Counter[Verdict]]) -> str:
    """Return verdicts as a table in Markdown."""
    heads = " | ".join(each.value for each in Verdict)
    lines = [f"| source | rebalances | {heads} |", "|---|---|---|---|---|---|"]
    for name, own in counts.items():
        total = own.total()
        share = f"{own[Verdict.RIGHT]} ({100 * own[Verdict.RIGHT] / max(total, 1):.0f} %)"
        others = [str(own[each]) for each in Verdict if each is not Verdict.RIGHT]
        lines.append(f"| {name} | {total} | {share} | {' | '.join(others)} |")
    return "\n".join(lines)


def _judged(
    steps: list[Taken], answers: Iterable[RebalanceStory]
) -> Iterator[tuple[Verdict, Taken, RebalanceStory]]:
    """Judge the answers of one group; a follow-up is worth what it follows."""
    times = [step.at_ms for step in steps]
    verdicts: dict[int, Verdict] = {}
    stepped: dict[int, int] = {}
    for answer in answers:
        index = max(0, bisect_right(times, answer.start_ms or 0) - 1)
        step = steps[index]
        if answer.follows is not None and stepped[answer.follows] == index:
            verdict = verdicts[answer.follows]
        else:
            verdict = verdict_on(answer, step.truths)
        verdicts[answer.number], stepped[answer.number] = verdict, index
        yield verdict, step, answer


def verdict_on(answer: RebalanceStory, truths: tuple[Truth, ...]) -> Verdict:
    """Compare an answer with the truths of its step."""
    said = list(_statements(answer))
    best = Verdict.WRONG if said else Verdict.UNKNOWN
    for truth in truths:
        for reason, member, text, cause in said:
            who = cause if _RANDOM_ID.fullmatch(member) else member
            if reason not in truth.reasons or not (not who or who.startswith(truth.member)):
                continue
            if re.search(truth.words, cause or text):
                return Verdict.RIGHT
            if not cause:
                best = Verdict.VAGUE
    return best


def _statements(answer: RebalanceStory) -> Iterator[tuple[str, str, str, str]]:
    """What an answer states: reason, member, all its words, and its first cause."""
    cause = answer.first_cause or ""
    said = answer.client_reason or ""
    cause = cause or ("" if said.startswith(_NO_CAUSE) else said)
    if answer.reason.value != _UNKNOWN:
        members = answer.caused_by or [""]
        for member in members:
            yield answer.reason.value, member, answer.because, cause
        return
    for member in answer.joined:
        yield "MEMBER_JOINED", member, "joined", cause
    for each in answer.gone:
        member, how = each.split(" ", 1)
        if how in _GONE:
            yield _GONE[how], member, how, cause


def _with_times(
    answers: Iterable[RebalanceStory], begun: Iterable[RebalanceStory]
) -> Iterator[RebalanceStory]:
    """Rebalances with the start that the broker's log has, where they have none of their own."""
    known = defaultdict(list)
    for own in begun:
        known[own.generation].append(own.start_ms)
    for each in answers:
        starts = known[each.generation] if each.start_ms is None else [each.start_ms]
        if not starts:
            raise DataError(f"no log has a rebalance to generation {each.generation}")
        yield replace(each, start_ms=starts.pop(0))


def _text(answer: RebalanceStory) -> str:
    follows = answer.follows and f"follow-up of #{answer.follows}"
    said = answer.client_reason and f'said "{answer.client_reason}"'
    first = answer.first_cause and f"first cause: {answer.first_cause}"
    before = answer.before and f"before: {answer.before}"
    parts = (
        f"#{answer.number} {answer.old_generation} -> {answer.generation}",
        answer.reason.value,
        *(follows, answer.because, first, said, before),
        f"joined {answer.joined}" if answer.joined else None,
        f"gone {answer.gone}" if answer.gone else None,
    )
    return " | ".join(part for part in parts if part)


def _ingested(folder: Path, name: str, source: Path) -> Path:
    out = folder / f"trace-{name}"
    (folder / f"ingest-{name}.txt").write_text(
        _run("ingest", str(source), "--out", str(out)), encoding="utf-8"
    )
    (folder / f"findings-{name}.txt").write_text(_run("findings", str(out)), encoding="utf-8")
    return out


def _stories(trace: Path) -> dict[str, tuple[RebalanceStory, ...]]:
    """What `explain` has of each group of a trace."""
    run = read_run(trace)
    events = coordinator_events(run.events(), run.info.source)
    others = [event for event in events if event.group_id is None]
    return {
        group: explain_group(group, lines, others).rebalances
        for group, lines in group_lines(events).items()
    }


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "coordinator_sim", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode > 1:
        raise DataError(f"{' '.join(arguments)}: {(done.stdout + done.stderr).strip()[-1000:]}")
    return done.stdout
