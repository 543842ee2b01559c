import json
from pathlib import Path

import pytest

from coordinator_sim.logtext.wordings.reasons import classify
from coordinator_sim.logtext.wordings.values import instance_id

WORDINGS = Path(__file__).with_name("reasons.jsonl")
"""Reasons in the words of all releases, and what each tells."""


@pytest.mark.parametrize("line", WORDINGS.read_text("utf-8").splitlines())
def test_every_wording_has_its_reason(line: str) -> None:
    """Capitals and particles changed between versions; the reason and its parts did not."""
    case = json.loads(line)
    cause = classify(case["text"])
    assert (cause.reason.name, cause.client_reason) == (case["reason"], case["client_reason"])
    if case["member"] is not None or "(c-1, c-2)" in case["text"]:
        assert cause.member_id == case["member"]
    assert cause.group_instance_id == case["instance"]


@pytest.mark.parametrize("text", [None, "", "None", "null", "Some(null)", "Optional.empty"])
def test_absent_instance_id_in_any_spelling(text: str | None) -> None:
    """Scala, Java and old versions each write the absence of an instance id their way."""
    assert instance_id(text) is None


@pytest.mark.parametrize("text", ["i-1", "Some(i-1)", "Optional[i-1]"])
def test_present_instance_id_in_any_spelling(text: str) -> None:
    """An instance id is unwrapped."""
    assert instance_id(text) == "i-1"
