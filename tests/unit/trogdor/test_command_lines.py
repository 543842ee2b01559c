"""What an external command says is understood as Kafka's ExternalCommandWorker does."""

import pytest

from coordinator_sim.trogdor.command_lines import Said, read_output, start_line


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"status": "green", "log": "m"}', Said(status="green", log="m")),
        ('{"error": "boom"}', Said(error="boom")),
        ("not json", Said()),
        ('{"status": {"a": 1}, "error": ""}', Said(status={"a": 1}, error="")),
        ("", Said()),
        ("[1]", Said()),
        ('"status"', Said()),
        ('{"status": null}', Said(status=None)),
        ('{"error": null, "log": 1.50}', Said(error="null", log="1.5")),
        ('{"error": {"a": 1}, "log": true}', Said(error="", log="true")),
        ('{"status": 1} and more', Said(status=1)),
        ('{"status": 1', Said()),
    ],
)
def test_a_line_of_output_says_status_log_and_error(line: str, said: Said) -> None:
    """J17: any of three keys; what is no object of JSON says nothing."""
    assert read_output(line) == said


def test_a_command_is_given_its_id_and_workload() -> None:
    """One compact line, with whatever is in the workload."""
    assert start_line("t1", {"a": [], "b": None}) == '{"id":"t1","workload":{"a":[],"b":null}}'
