"""Which of Kafka's unit tests the door of `lines` cannot judge."""

import tomllib

from coordinator_sim_conformance.kafka_tests.door.running import CLASSES, HERE, left_out


def test_every_left_out_test_is_of_a_class_that_runs_and_has_a_reason() -> None:
    """A reason says what the test does; that it fails is none."""
    tests = left_out()
    assert {test.partition("#")[0] for test in tests} == set(CLASSES)
    for test, reason in tests.items():
        kind, _, why = reason.partition(": ")
        assert kind
        assert why, test
        assert "fails" not in reason, test


def test_no_test_is_left_out_for_two_reasons() -> None:
    """The second would hide the first."""
    kinds = tomllib.loads((HERE / "left_out.toml").read_text(encoding="utf-8"))
    assert sum(map(len, kinds.values())) == len(left_out())
