"""Pages of docs/ about endpoints that the suite was played on: deviations, and counts by area."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from coordinator_sim_conformance.differ.explained import DEVIATIONS, read_explanations
from coordinator_sim_conformance.targets.choice import known_gaps_of
from coordinator_sim_conformance.verdicts.results import RunResult, read_result, unlock_lines
from coordinator_sim_conformance.verdicts.standing import Standing

RESULTS = Path(__file__).parent / "conformance-results"
GUIDE = Path(__file__).parent / "guides" / "grade-your-broker.md"
GRADED = RESULTS / "serve-defaults.json.gz"
ABOUT = {
    "kfake": "franz-go's fake cluster, as the Go module in `conformance/endpoints/kfake` has it, "
    "required to be Kafka 4.4",
    "librdkafka-mock": "the mock cluster of librdkafka 2.16.0 (confluent-kafka 2.16.1), required "
    "to be Kafka 2.8, which its versions are nearest to",
}
READ_BEFORE = {"K": 32, "L": 37}
"""Letter -> the last number that reading the source had found; the suite found the later ones."""
REASON = re.compile(r"([KL]\d+): (.*)")


def known_deviations_page(header: str) -> str:
    """What peers do differently from Kafka, by number, with the cases that show it."""
    lines = [
        header,
        "# Known deviations of peers\n\n",
        "What a peer does differently from Apache Kafka, and what shows it: each failure of ",
        "`conformance run --target kfake` and `--target librdkafka-mock` is one of these, so that ",
        "a new one, or one that is gone, turns a run red; so is what *random programs* of ",
        "`conformance differ --explained kfake` and `librdkafka-mock` meet, as far as it is ",
        "understood. The numbers are ours. *Found by the suite* are those that reading the ",
        "sources had not shown before.\n",
    ]
    for name, about in ABOUT.items():
        rows, cases = deviations_of(name)
        met = deviations_met(name)
        lines += [
            f"\n## {name}\n\n{about}. Cases that fail: {sum(map(len, cases.values()))}.\n\n",
            "| | what it does | what shows it | |\n|---|---|---|---|\n",
        ]
        for number in sorted(met | rows, key=lambda each: int(each[1:])):
            is_new = int(number[1:]) > READ_BEFORE[number[0]]
            found = "found by the suite" if is_new else ""
            shown = [*cases.get(number, ()), *(["random programs"] if number in met else ())]
            what = rows.get(number) or met[number]
            lines.append(f"| {number} | {what} | {', '.join(shown)} | {found} |\n")
    return "".join(lines)


def deviations_of(name: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Words and cases of each deviation of a target, by its number.

    Raises:
        ValueError: a reason has no number, or a number has two texts.
    """
    path = known_gaps_of(name)
    table: Mapping[str, str] = {} if path is None else tomllib.loads(path.read_text("utf-8"))
    rows: dict[str, str] = {}
    cases: dict[str, list[str]] = {}
    for key, reason in table.items():
        found = REASON.fullmatch(reason)
        if found is None or rows.setdefault(found[1], found[2]) != found[2]:
            raise ValueError(f"{path}: {key}: {reason!r} is no numbered deviation, or another one")
        cases.setdefault(found[1], []).append(key.partition("@")[0])
    return rows, cases


def deviations_met(name: str) -> dict[str, str]:
    """Words of each deviation that random programs met at a target, by its number."""
    met: dict[str, str] = {}
    for each in read_explanations(DEVIATIONS / f"{name}.toml"):
        met.setdefault(each.explanation_id.partition("-")[0], each.what)
    return met


def matrix_totals_page(header: str) -> str:
    """How many cases passed on each implementation, whole and by area, from the result files."""
    columns = [
        (profile, result)
        for path in sorted(RESULTS.glob("*.json.gz"))
        for result in [read_result(path)]
        for profile in result.profiles
    ]
    heads = [f"{result.target.name} as {profile}" for profile, result in columns]
    lines = [
        header,
        "# Implementations by areas\n\n",
        "Cases that an implementation passed, of those that it could be asked; the rest is ",
        "skipped, each with its reason. *Settings* are skipped for want of a setting, which ",
        "[`conformance settings`](guides/grade-your-broker.md) prints: implementations that are ",
        "started in several variants have none, those named *defaults* are one broker with ",
        "Kafka's default settings. Figures are from the result files in ",
        "`docs/conformance-results`; `./dev matrix` plays everything again. All cells with their ",
        "evidence, transcripts and frames, as one page:\n\n",
        "```sh\nconformance matrix docs/conformance-results/*.json.gz\n```\n\n",
        "| implementation | version | passed | failed | known gaps | crashed or hung | quirks | ",
        "skipped | settings | began (UTC) |\n|---|---|---|---|---|---|---|---|---|---|\n",
    ]
    for (profile, result), head in zip(columns, heads, strict=True):
        lines.append(f"| {head} | {result.target.version} | {totals(profile, result)} |\n")
    lines += [
        "\n## By area\n\nPassed of played.\n\n",
        f"| area | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}\n",
    ]
    areas = dict.fromkeys(each.area for _, result in columns for each in result.endings)
    lines += [
        f"| {area} | {' | '.join(cell(*each, area) for each in columns)} |\n" for area in areas
    ]
    lines.append(f"| **all** | {' | '.join(cell(*each) for each in columns)} |\n")
    return "".join(lines)


def grading_guide() -> str:
    """The guide to grading a broker, with what a run prints of one with default settings."""
    result = read_result(GRADED)
    (profile,) = result.profiles
    counts = counted(profile, result)
    shown = (Standing.PASSED, Standing.FAILED, Standing.SKIPPED, Standing.UNKNOWN)
    printed = [
        f"localhost:9092: nearest to Kafka {profile} by the versions that it offers",
        "...",
        f"localhost:9092 as {profile}: "
        + ", ".join(f"{counts[standing]} {standing.value}" for standing in shown),
        *unlock_lines(result),
    ]
    pattern = re.compile(r"(--junit conformance\.xml\n).*?(\n```)", re.DOTALL)
    text = GUIDE.read_text(encoding="utf-8")
    return pattern.sub(lambda found: f"{found[1]}{chr(10).join(printed)}{found[2]}", text, count=1)


def totals(profile: str, result: RunResult) -> str:
    """How the cases of a profile ended, as cells of a row."""
    counts = counted(profile, result)
    played = counts.total() - counts[Standing.SKIPPED]
    failed = counts[Standing.FAILED] + counts[Standing.UNKNOWN] + counts[Standing.GAP_CLOSED]
    gone = (Standing.CRASHED, Standing.HUNG, Standing.KNOWN_CRASH, Standing.KNOWN_HANG)
    locked = sum(bool(each.unlock) for each in result.endings if each.profile == profile)
    cells = (
        f"{counts[Standing.PASSED]}/{played}",
        failed,
        counts[Standing.KNOWN_GAP],
        sum(counts[each] for each in gone),
        counts[Standing.QUIRK],
        counts[Standing.SKIPPED],
        locked,
        result.at,
    )
    return " | ".join(str(each) for each in cells)


def counted(profile: str, result: RunResult, area: str | None = None) -> Counter[Standing]:
    """How many endings of a profile, and of an area if one is named, count as what."""
    return Counter(
        result.standing(each)
        for each in result.endings
        if each.profile == profile and area in {None, each.area}
    )


def cell(profile: str, result: RunResult, area: str | None = None) -> str:
    """Passed of played; nothing where no case was played."""
    counts = counted(profile, result, area)
    played = counts.total() - counts[Standing.SKIPPED]
    return f"{counts[Standing.PASSED]}/{played}" if played else ""
