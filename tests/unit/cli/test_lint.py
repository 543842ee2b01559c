"""`lint`: files in, lines out."""

import json
from itertools import product
from math import comb, prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.cli.poll_times import Histogram, exceeds
from tests.command_line import run_here

QUIET = """\
group.id=g
group.instance.id=a
session.timeout.ms=60000
partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor
"""


def written(tmp_path: Path, text: str, name: str = "client.properties") -> str:
    """The path of a file with this text."""
    path = tmp_path / name
    path.write_text(text)
    return str(path)


@settings(max_examples=20)
@given(
    times=st.dictionaries(st.integers(0, 1_000), st.integers(1, 9), min_size=1, max_size=4),
    records=st.integers(1, 5),
    limit_ms=st.integers(1, 4_000),
)
def test_probability_is_that_of_all_combinations(
    times: dict[int, int], records: int, limit_ms: int
) -> None:
    """Every sequence of records counts; sums within some cells of the limit may go either way."""
    total = sum(times.values())

    def beyond(bound_ms: float) -> float:
        return sum(
            prod(times[time_ms] / total for time_ms in each)
            for each in product(times, repeat=records)
            if sum(each) > bound_ms
        )

    histogram = Histogram(tuple(map(float, times)), tuple(map(float, times.values())))
    found = exceeds(histogram, records, limit_ms)
    near_ms = 2 * (records + 1) * records * max(times) / (1 << 18)
    assert beyond(limit_ms + near_ms) - 1e-9 <= found <= beyond(limit_ms - near_ms) + 1e-9


def test_slow_records_are_found_before_they_remove_a_member(tmp_path: Path) -> None:
    """One record in a hundred takes a minute: five of them in a poll outlast five minutes."""
    file = written(tmp_path, QUIET)
    times = written(tmp_path, "# ms count\n10 99\n60000, 1\n", "times.txt")
    done = run_here("lint", file, "--processing-histogram", times, "--json")
    (advice,) = json.loads(done.stdout)["advice"]
    assert (done.returncode, advice["setting"]) == (1, "max.poll.interval.ms")
    rare = sum(comb(500, slow) * 0.01**slow * 0.99 ** (500 - slow) for slow in range(5))
    assert f"outlasts it with probability {1 - rare:.3g}:" in advice["what"]
    assert advice["change"].startswith("set max.poll.records=")


def test_quiet_settings_are_found_quiet(tmp_path: Path) -> None:
    """Exit code 0, also with records that are quick."""
    file = written(tmp_path, QUIET)
    times = written(tmp_path, "10 99\n", "times.txt")
    done = run_here("lint", file, "--processing-histogram", times)
    assert (done.returncode, done.stdout) == (0, f"{file}: nothing to change\n")


@pytest.mark.parametrize(
    ("text", "histogram", "problem"),
    [
        ("config.storage.topic=c\nconsumer.max.poll.records=0\n", "1 1\n", "from 1 to 100000"),
        (QUIET, "1\n", "times.txt:1: '1': wants MILLISECONDS COUNT"),
        (QUIET, "-1 1\n", "wants MILLISECONDS COUNT"),
        (QUIET, "1 0\n", "no record is counted"),
        (QUIET, "", "no record is counted"),
        (QUIET + "max.poll.records=100001\n", "1 1\n", "must be from 1 to 100000"),
    ],
)
def test_what_is_neither_is_one_line(
    tmp_path: Path, text: str, histogram: str, problem: str
) -> None:
    """File, value and what would do."""
    times = written(tmp_path, histogram, "times.txt")
    done = run_here("lint", written(tmp_path, text), "--processing-histogram", times)
    assert done.returncode in {1, 2}
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1


WORKER = """\
bootstrap.servers=broker-1:9092
group.id=connect
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
config.storage.topic=configs
offset.storage.topic=offsets
status.storage.topic=status
scheduled.rebalance.max.delay.ms=90000
"""


def test_a_workers_file_is_told_by_its_names(tmp_path: Path) -> None:
    """Sink tasks poll by the settings behind consumer., which the histogram is held against."""
    file = written(tmp_path, WORKER, "connect-distributed.properties")
    times = written(tmp_path, "10 99\n60000 1\n", "times.txt")
    quiet = run_here("lint", file)
    assert (quiet.returncode, quiet.stdout) == (0, f"{file}: nothing to change\n")
    done = run_here("lint", file, "--processing-histogram", times, "--json")
    (advice,) = json.loads(done.stdout)["advice"]
    assert advice["setting"] == "consumer.max.poll.interval.ms"
    assert advice["change"].startswith("set consumer.max.poll.records=")


def test_kind_says_whose_a_file_is(tmp_path: Path) -> None:
    """A file without any name that only a worker has."""
    file = written(tmp_path, "group.id=connect\nmax.poll.records=9\n")
    done = run_here("lint", file, "--kind", "connect", "--json")
    found = {each["setting"]: each for each in json.loads(done.stdout)["advice"]}
    assert found["config.storage.topic"]["weight"] == "error"
    assert "consumer.max.poll.records" in found["max.poll.records"]["change"]


def test_a_trace_tells_of_the_workers_group(tmp_path: Path) -> None:
    """What a simulated Connect cluster's trace says stands beside what the file says."""
    assert run_here("run", "connect-worker-lost", "--out", str(tmp_path / "t")).returncode == 0
    file = written(tmp_path, WORKER.replace("group.id=connect\n", "group.id=connect-cluster\n"))
    done = run_here("lint", file, "--trace", str(tmp_path / "t"))
    assert done.returncode == 1, done.stderr
    assert "\ntrace: " in "\n" + done.stdout
