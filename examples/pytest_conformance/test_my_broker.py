"""Somebody's broker, started as a process and graded: every requirement is one test.

Install the extras `conformance` and `serve`, and run pytest; put your broker's command in.
"""

import json
import subprocess
from collections.abc import Iterator

import pytest

from coordinator_sim_pytest import CoordinatorConformance

COMMAND = ("coordinator-sim", "serve", "--port", "0")
SETTINGS = ("group.min.session.timeout.ms=100", "transaction.partition.verification.enable=false")
"""With them more cases can be played, and sooner; `conformance settings` prints the others."""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """Start the broker, yield its address, and end it behind the last test."""
    words = [*COMMAND, *(word for setting in SETTINGS for word in ("--set", setting))]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as broker:
        assert broker.stdout is not None
        yield json.loads(broker.stdout.readline())["bootstrap"]
        broker.terminate()


class TestMyBroker(CoordinatorConformance):
    """Every requirement that time on the wall can show."""
