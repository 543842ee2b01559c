"""Failures of a Spark job in one line: what a worker raised, and workers that were lost."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from coordinator_sim.errors import DataError

_RAISED: Final = re.compile(
    r"^\s*(?!org\.|java\.|scala\.|py4j\.|pyspark\.)([\w.]*(?:Error|Exception): .+)$", re.MULTILINE
)
"""The last line of a Python traceback, which names the exception."""
_LOST: Final = re.compile(r"(ExecutorLostFailure|Master removed our application|All masters are)")
LOST_WORKERS: Final = (
    "Spark lost the workers that ran the job, and none took over; start the workers and run the "
    "command again"
)
_UNSEEN: Final = re.compile(r"FileNotFoundError|No such file")


@contextmanager
def failure_named(what: str) -> Iterator[None]:
    """Turn a failure of a worker into one line; other failures pass unchanged.

    Args:
        what: What workers read, such as `segments`, for the advice.

    Raises:
        DataError: a worker failed, or was lost as often as Spark tries again.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise DataError(_told(str(error), what)) from error


def has_lost_workers(text: str) -> bool:
    """Whether Spark's report of a failure says that the job lost its workers."""
    return _LOST.search(text) is not None


def _told(text: str, what: str) -> str:
    if has_lost_workers(text):
        return LOST_WORKERS
    found = _RAISED.findall(text)
    reason = found[-1] if found else text.partition("\n")[0]
    if _UNSEEN.search(reason) is not None:
        return f"a Spark worker failed: {reason}; workers must see the {what} under the same paths"
    return f"a Spark worker failed: {reason}"
