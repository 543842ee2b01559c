"""What counts as a difference between two answers."""

from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.differ import explained
from coordinator_sim_conformance.differ.comparison import Difference, first_difference

Json = dict[str, Any]
CALL: Json = {"op": "call", "api": "Heartbeat", "id": 1}


def answer(*codes: int, **fields: object) -> Json:
    """An answer with a Heartbeat reply of each error code."""
    replies = [
        {"id": 1, "at": 5, "api": "Heartbeat", "v": 4, "data": {"errorCode": code}}
        for code in codes
    ]
    return {"now": 5, "replies": replies, **fields}


def record(partition: int, offset: int) -> Json:
    """An appended record, as far as it matters here."""
    return {"partition": partition, "offset": offset}


def test_equal_answers_do_not_differ() -> None:
    """The order of an object's fields does not count."""
    assert first_difference(CALL, {"now": 5, "id": 1}, {"id": 1, "now": 5}) is None


def test_the_first_field_is_named_with_both_values() -> None:
    """A path a reader can follow, and the API that it is in."""
    assert first_difference(CALL, answer(0, 25), answer(0, 22)) == Difference(
        "replies[1].data.errorCode", 25, 22, "Heartbeat"
    )


def test_a_missing_reply_is_a_difference() -> None:
    """One side has parked what the other has answered."""
    found = first_difference(CALL, answer(), answer(0))
    assert found is not None
    assert [found.path, found.ours, found.what] == ["replies[0]", "(nothing)", "Heartbeat"]


def test_virtual_time_and_the_order_of_replies_count() -> None:
    """The same replies in another order differ, and so does an instant."""
    other = answer(25, 0)
    assert first_difference(CALL, answer(0, 25), other) is not None
    assert first_difference(CALL, answer(0), {**answer(0), "now": 6}) is not None


def test_errors_differ_in_being_there_not_in_their_words() -> None:
    """Each side says in its own words why it cannot run a command."""
    assert first_difference(CALL, {"error": "no such api"}, {"error": "java.lang..."}) is None
    found = first_difference(CALL, {"error": "no such api"}, {})
    assert found is not None
    assert found.path == "error"


def test_records_are_compared_in_their_order() -> None:
    """Also across partitions: which append came first is part of the answer."""
    ours = {"records": [record(1, 0), record(0, 0)]}
    assert first_difference(CALL, ours, {"records": [record(1, 0), record(0, 0)]}) is None
    found = first_difference(CALL, ours, {"records": [record(0, 0), record(1, 0)]})
    assert found is not None
    assert [found.what, found.path] == ["record", "records[0].partition"]


def test_differences_of_one_cause_have_one_signature() -> None:
    """Places in lists do not make another kind."""
    first = Difference("replies[0].data.members[3].errorCode", 0, 25, "LeaveGroup")
    second = Difference("replies[2].data.members[0].errorCode", 82, 25, "LeaveGroup")
    assert first.signature == second.signature == "LeaveGroup:replies.data.members.errorCode"


EXPLANATION = explained.Explanation(
    explanation_id="x",
    references=("kafka-4.4.0",),
    what="differs",
    source="Kafka",
    kind="Heartbeat",
    path=r"replies\[0\]\.data\.errorCode",
    ours="25",
    theirs="22|27",
)


@pytest.mark.parametrize(
    ("reference", "difference", "is_covered"),
    [
        ("kafka-4.4.0", Difference("replies[0].data.errorCode", 25, 27, "Heartbeat"), True),
        ("kafka-4.3.1", Difference("replies[0].data.errorCode", 25, 27, "Heartbeat"), False),
        ("kafka-4.4.0", Difference("replies[1].data.errorCode", 25, 27, "Heartbeat"), False),
        ("kafka-4.4.0", Difference("replies[0].data.errorCode", 125, 27, "Heartbeat"), False),
        ("kafka-4.4.0", Difference("replies[0].data.errorCode", 25, 227, "Heartbeat"), False),
        ("kafka-4.4.0", Difference("replies[0].data.errorCode", 25, 27, "SyncGroup"), False),
    ],
)
def test_an_explanation_covers_exactly_what_it_says(
    reference: str, difference: Difference, is_covered: bool
) -> None:
    """Reference, kind, whole path and both values must match."""
    found = explained.explanation_of((EXPLANATION,), reference, difference)
    assert (found is EXPLANATION) is is_covered


def test_explanations_are_read_from_their_file(tmp_path: Path) -> None:
    """The project's own file can be read, and a wrong one is named."""
    explained.read_explanations()
    path = tmp_path / "explained.toml"
    path.write_text('[[explained]]\nid = "a"\nwhy = "because"\n')
    with pytest.raises(DataError, match=r"explained\.toml: .*why"):
        explained.read_explanations(path)
