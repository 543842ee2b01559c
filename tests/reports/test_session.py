"""What a Spark session is started with: partitions that fit the data, unless the user says."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim_reports.session import FEWEST_PARTITIONS, partitions_for


@given(st.integers(0, 10**11), st.integers(0, 10**11))
def test_partitions_follow_the_events(one: int, other: int) -> None:
    """More events never have fewer partitions; none of them is larger than it must be."""
    fewer, more = sorted((one, other))

    assert FEWEST_PARTITIONS <= partitions_for(fewer) <= partitions_for(more) <= 4_000
    assert partitions_for(more) * 250_000 >= min(more, 10**9)


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("conf", "expected"), [("", "33"), ("spark.sql.shuffle.partitions=5", "5")]
)
def test_what_the_user_configured_stays(conf: str, expected: str) -> None:
    """The number of partitions from the submit arguments, else the one that fits the data."""
    program = (
        "from coordinator_sim_reports.session import spark_session\n"
        "with spark_session('local[1]', shuffle_partitions=33) as spark:\n"
        "    print(spark.conf.get('spark.sql.shuffle.partitions'))\n"
    )
    arguments = f"{f'--conf {conf} ' if conf else ''}pyspark-shell"

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": arguments},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == [expected]
