"""What a run says: how endings count, result files, baselines, JUnit and TAP."""

import re
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim_conformance.frames import Frame
from coordinator_sim_conformance.registry import any_cases
from coordinator_sim_conformance.requirements import Level
from coordinator_sim_conformance.running import Ending, Verdict
from coordinator_sim_conformance.verdicts import baseline, results
from coordinator_sim_conformance.verdicts.junit import junit_xml
from coordinator_sim_conformance.verdicts.quoting import printable, quoted
from coordinator_sim_conformance.verdicts.standing import RED, Standing, standing_of
from coordinator_sim_conformance.verdicts.tap import tap_text

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=30)
"""Any text at all: control characters, halves of characters, marks of TAP and XML."""


def ending(case_id: str = "HB-013", verdict: Verdict = Verdict.PASSED, **fields: Any) -> Ending:  # noqa: ANN401 - any field
    """An ending with little in it."""
    told: dict[str, Any] = {
        "case_id": case_id,
        "area": "HEARTBEAT",
        "profile": "4.4",
        "verdict": verdict,
        "title": "Heartbeats keep the session",
        "level": Level.MUST,
    }
    return Ending(**told | fields)


def failed(case_id: str = "HB-013", **fields: Any) -> Ending:  # noqa: ANN401 - any field
    """One that failed, with everything that a failure has."""
    told: dict[str, Any] = {
        "sources": ("Kafka.method",),
        "reason": "wanted: A NONE",
        "expectation": "heartbeat A | A NONE",
        "came": "A error=UNKNOWN_MEMBER_ID",
        "transcript": ("stable A", "heartbeat A | A error=UNKNOWN_MEMBER_ID"),
        "frames": (
            Frame(direction="sent", api="Heartbeat", version=4, at_ms=12, hex="000c00040000"),
        ),
        "elapsed_s": 0.25,
        "again": f"conformance run --target serve --profile 4.4 --case {case_id}",
    }
    return ending(case_id, Verdict.FAILED, **told | fields)


def result_of(*endings: Ending, is_strict: bool = False) -> results.RunResult:
    """A run with these endings."""
    return results.RunResult(
        target=results.TargetFacts(name="serve", version="1.0", facts={"offers": "exact time"}),
        suite_version="0.1.0",
        at="2026-11-23T11:30:00Z",
        endings=endings,
        is_strict=is_strict,
    )


# -- how endings count -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "is_strict", "wanted"),
    [
        ({"verdict": Verdict.PASSED}, False, Standing.PASSED),
        ({"verdict": Verdict.FAILED}, False, Standing.FAILED),
        ({"verdict": Verdict.FAILED, "known_gap": "why"}, False, Standing.KNOWN_GAP),
        ({"verdict": Verdict.UNKNOWN, "known_gap": "why"}, False, Standing.KNOWN_GAP),
        ({"verdict": Verdict.CRASHED}, False, Standing.CRASHED),
        ({"verdict": Verdict.HUNG, "is_quirk": True}, False, Standing.HUNG),
        ({"verdict": Verdict.CRASHED, "known_gap": "why"}, False, Standing.KNOWN_CRASH),
        ({"verdict": Verdict.HUNG, "known_gap": "why"}, False, Standing.KNOWN_HANG),
        ({"verdict": Verdict.PASSED, "known_gap": "why"}, False, Standing.GAP_CLOSED),
        ({"verdict": Verdict.SKIPPED, "known_gap": "why"}, False, Standing.SKIPPED),
        ({"verdict": Verdict.FAILED, "is_quirk": True}, False, Standing.QUIRK),
        ({"verdict": Verdict.FAILED, "is_quirk": True}, True, Standing.FAILED),
        ({"verdict": Verdict.UNKNOWN, "is_quirk": True}, False, Standing.UNKNOWN),
    ],
)
def test_ending_counts_by_its_verdict_its_gap_and_strictness(
    fields: dict[str, Any], is_strict: bool, wanted: Standing
) -> None:
    """A known gap is no failure, a closed one is; a quirk counts in a strict run."""
    assert standing_of(ending(**fields), is_strict=is_strict) is wanted


def test_command_is_quoted_for_a_shell_and_names_the_case_exactly() -> None:
    """What is copied into a shell plays that case and no other."""
    options = ("--bootstrap", "a:1,b:2", "--command-config", "my file.properties")
    again = results.with_command(ending(), options, has_profile=True).again
    assert again == (
        "conformance run --bootstrap a:1,b:2 --command-config 'my file.properties' "
        "--profile 4.4 --case HB-013"
    )


# -- result files ----------------------------------------------------------------------------


def test_result_comes_back_from_its_file(tmp_path: Path) -> None:
    """What is written is read, frames and all."""
    file, result = tmp_path / "result.json", result_of(failed(), ending("HB-014"))
    file.write_bytes(results.encoded(result))
    assert results.read_result(file) == result


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[]", "`conformance run --result FILE`"),
        ("{", "`conformance run --result FILE`"),
        ('{"schema_version": 2}', "schema version 2, and this suite reads up to 1"),
        ('{"schema_version": 1}', "missing required field"),
    ],
)
def test_file_that_is_no_result_is_refused_in_a_line(text: str, named: str, tmp_path: Path) -> None:
    """The message names the file, and what was wanted."""
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(DataError) as refused:
        results.read_result(file)
    assert str(file) in str(refused.value)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)


def test_case_that_ends_twice_is_refused(tmp_path: Path) -> None:
    """Nobody could say which of the two counts."""
    file = tmp_path / "twice.json"
    file.write_bytes(results.encoded(result_of(ending(), failed())))
    with pytest.raises(DataError, match=r"HB-013 as 4\.4 ends 2 times"):
        results.read_result(file)


# -- baselines -------------------------------------------------------------------------------


def gaps_of(text: str, folder: Path) -> baseline.Gaps:
    """The known gaps that a file with this text has."""
    file = folder / "gaps.toml"
    file.write_text(text, encoding="utf-8")
    return baseline.read_baseline(file, any_cases())


def test_baseline_names_ids_and_ids_of_a_profile(tmp_path: Path) -> None:
    """The profile's own reason wins."""
    gaps = gaps_of('HB-013 = "everywhere"\n"HB-013@4.4" = "here"\n', tmp_path)
    assert baseline.with_gap(failed(), gaps).known_gap == "here"
    assert baseline.with_gap(failed(profile="3.9"), gaps).known_gap == "everywhere"
    assert not baseline.with_gap(failed("HB-014"), gaps).known_gap


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('HB-999 = "why"', "no case 'HB-999'"),
        ('"JOIN-002@4.4" = "why"', "JOIN-002 is not played as '4.4': use one of 0.10.2"),
        ('"C-JOIN-03@4.4" = "why"', "use one of clients"),
        ('HB-013 = ""', "wants a reason"),
        ("HB-013 = 3", "wants a reason"),
        ('JOIN-025.leader = "why"', "ids with a dot go in quotes"),
        ('HB-013@4.4 = "why"', "keys in quotes"),
    ],
)
def test_wrong_baseline_is_one_line(text: str, named: str, tmp_path: Path) -> None:
    """The message names the file, the entry and what would be right."""
    with pytest.raises(ConfigError) as refused:
        gaps_of(text, tmp_path)
    assert named in str(refused.value)
    assert "gaps.toml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_new_baseline_keeps_what_is_open_and_drops_what_is_closed() -> None:
    """Reasons stay; a bare id that passes somewhere is taken apart; what was skipped stays."""
    before = {
        "HB-002": "open",
        "HB-003": "closed",
        "HB-004": "open in one of two",
        "HB-005": "not played",
        "HB-006": "skipped",
    }
    run = result_of(
        failed("HB-002"),
        ending("HB-003"),
        failed("HB-004"),
        ending("HB-004", profile="3.9"),
        ending("HB-006", Verdict.SKIPPED),
        failed("HB-013"),
    )
    assert tomllib.loads(baseline.baseline_text(run, before)) == {
        "HB-002": "open",
        "HB-004@4.4": "open in one of two",
        "HB-005": "not played",
        "HB-006": "skipped",
        "HB-013@4.4": "heartbeat A | A NONE: came A error=UNKNOWN_MEMBER_ID",
    }


VERDICTS = st.sampled_from(Verdict)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["HB-002", "HB-003", "HB-004"]), st.sampled_from(["3.9", "4.4"])),
        VERDICTS,
    ),
    st.dictionaries(st.sampled_from(["HB-002", "HB-003", "HB-003@4.4", "HB-004@3.9"]), ANY_TEXT),
)
@pytest.mark.property
def test_run_is_green_with_the_baseline_that_it_writes(
    verdicts: dict[tuple[str, str], Verdict], before: dict[str, str]
) -> None:
    """Whatever was known before: nothing fails, and no gap is closed."""
    run = result_of(
        *(
            ending(case_id, verdict, profile=profile, reason="why")
            for (case_id, profile), verdict in verdicts.items()
        )
    )
    after = tomllib.loads(
        baseline.baseline_text(run, {key: text or "-" for key, text in before.items()})
    )
    judged = [standing_of(baseline.with_gap(each, after), is_strict=True) for each in run.endings]
    assert RED.isdisjoint(judged)


# -- quoted text -----------------------------------------------------------------------------


@given(ANY_TEXT)
@pytest.mark.property
def test_quoted_text_is_read_by_toml_and_yaml(text: str) -> None:
    """One way to quote for both, for any text."""
    assert tomllib.loads(f"key = {quoted(text)}") == {"key": printable(text)}
    assert yaml.safe_load(f"key: {quoted(text)}") == {"key": printable(text)}


# -- JUnit and TAP ---------------------------------------------------------------------------

EACH = (
    ending("HB-002"),
    failed("HB-003"),
    ending("HB-004", Verdict.SKIPPED, reason="serve does not offer append faults"),
    ending("HB-005", Verdict.UNKNOWN, reason="KeyError: 'memberId'"),
    failed("HB-006", known_gap="their #12"),
    ending("HB-009", known_gap="their #13"),
    failed("HB-021", is_quirk=True),
    ending("HB-022", Verdict.CRASHED, reason="the broker process ended with SIGABRT"),
    ending("HB-023", Verdict.HUNG, reason="the broker process hangs"),
    ending("HB-024", Verdict.CRASHED, known_gap="their #14"),
    ending("HB-025", Verdict.HUNG, known_gap="their #15"),
)
"""One of each standing."""


def test_junit_fails_what_makes_the_run_fail_and_skips_with_reasons() -> None:
    """A closed gap is a failure, a crash an error; a known gap and a quirk are skipped."""
    root = ET.fromstring(junit_xml(result_of(*EACH)))  # noqa: S314 - our own
    (suite,) = root
    kinds = {case.get("name", "").split()[0]: [*case] for case in suite.iter("testcase")}

    assert root.get("failures") == suite.get("failures") == "3"
    assert root.get("errors") == suite.get("errors") == "2"
    assert suite.get("skipped") == "5"
    assert suite.get("tests") == "11"
    assert {key: [each.tag for each in found] for key, found in kinds.items()} == {
        "HB-002": [],
        "HB-003": ["failure"],
        "HB-004": ["skipped"],
        "HB-005": ["failure"],
        "HB-006": ["skipped"],
        "HB-009": ["failure"],
        "HB-021": ["skipped"],
        "HB-022": ["error"],
        "HB-023": ["error"],
        "HB-024": ["skipped"],
        "HB-025": ["skipped"],
    }
    assert kinds["HB-022"][0].get("type") == "crashed"
    assert kinds["HB-024"][0].get("message") == "known crash: their #14"
    text = kinds["HB-003"][0].text or ""
    for wanted in ("expected: ", "Kafka.method", "12 ms sent Heartbeat 4 000c", "--case HB-003"):
        assert wanted in text
    assert kinds["HB-004"][0].get("message") == "serve does not offer append faults"
    assert kinds["HB-006"][0].get("message") == "known gap: their #12"


TEST_LINE = re.compile(r"(not )?ok (\d+) - (.*?)(?: # (SKIP|TODO) (.*))?")


def test_tap_has_each_case_and_a_block_of_yaml_for_what_did_not_pass() -> None:
    """A closed gap is `not ok`; known gaps and quirks are `TODO`, which nobody counts."""
    text = tap_text(result_of(*EACH))
    lines = [TEST_LINE.fullmatch(line) for line in text.splitlines() if "ok " in line[:7]]
    told = [(bool(found[1]), found[4]) for found in lines if found]

    assert text.startswith("TAP version 14\n1..11\n")
    assert told == [
        (False, None),
        (True, None),
        (False, "SKIP"),
        (True, None),
        (True, "TODO"),
        (True, None),
        (True, "TODO"),
        (True, None),
        (True, None),
        (True, "TODO"),
        (True, "TODO"),
    ]
    block = yaml.safe_load(text.partition("  ---\n")[2].partition("  ...\n")[0])
    assert block["expected"] == "heartbeat A | A NONE"
    assert block["transcript"][0] == "stable A"
    assert block["again"].endswith("--case HB-003")


@given(st.sampled_from(EACH), ANY_TEXT, ANY_TEXT)
@pytest.mark.property
def test_any_text_fits_into_junit_and_tap(one: Ending, title: str, reason: str) -> None:
    """A target may answer anything: what it said breaks no form."""
    odd = replace(one, title=title, reason=reason, transcript=(title, reason), came=title)
    result = result_of(odd)

    root = ET.fromstring(junit_xml(result))  # noqa: S314 - our own
    assert len(root.findall(".//testcase")) == 1
    text = tap_text(result)
    assert len([line for line in text.split("\n") if TEST_LINE.fullmatch(line)]) == 1
    block = text.partition("\n  ---\n")[2].partition("\n  ...\n")[0]
    if block:
        assert yaml.safe_load(block)["transcript"] == [printable(title), printable(reason)]
