"""Connect's own config store and ours make the same of every record."""

from random import Random

import pytest

from coordinator_sim_conformance.real_kafka import config_store

pytestmark = pytest.mark.real_kafka

RUNS = 300


def test_random_records_mean_the_same() -> None:
    """Snapshot, order, exception and listener after each of 18,000 records, odd ones among them."""
    random = Random(14)  # noqa: S311 - a repeatable draw
    runs = [config_store.random_run(random) for _ in range(RUNS)]
    theirs, ours = config_store.read_by_connect(runs), config_store.read_by_us(runs)
    assert len(theirs) == len(ours)
    records = [record for each, _ in runs for record in each]
    for number, (their, our) in enumerate(zip(theirs, ours, strict=True)):
        assert their == our, f"record {number}: {records[number]}"
