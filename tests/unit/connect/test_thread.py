"""Threads as generators: what ends a wait, and that answers reach the one who asked."""

import pytest

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.effects import DescribeCluster
from coordinator_sim.connect.thread import Blocking, Outbox, Pending, Thread, Threads, Wait
from coordinator_sim.errors import InvariantViolation


def test_a_thread_runs_until_it_waits_and_goes_on_when_answered() -> None:
    """The question leaves through the outbox; its answer moves the thread to its end."""
    outbox = Outbox()
    told: list[object] = []

    def main() -> Blocking[None]:
        asked = outbox.ask(DescribeCluster)
        yield Wait(asked, until_ms=500)
        told.append(asked.result())

    thread = Thread(main())
    assert thread.run(0)
    assert (outbox.take(), thread.deadline_ms) == ((DescribeCluster(1),), 500)
    assert not thread.run(499)
    outbox.answered(1, "cluster")
    assert thread.run(499)
    assert (told, thread.is_finished) == (["cluster"], True)


def test_a_wait_ends_at_its_instant() -> None:
    """A deadline moves the thread though nothing was answered; a late answer changes nothing."""
    pending: Pending[object] = Pending()
    seen: list[bool] = []

    def main() -> Blocking[None]:
        yield Wait(pending, until_ms=10)
        seen.append(pending.done)

    thread = Thread(main())
    thread.run(0)
    thread.run(10)
    pending.complete("late")
    assert (seen, thread.is_finished) == ([False], True)


def test_the_first_outcome_stays_and_a_failure_has_no_result() -> None:
    """Completing twice keeps the first; asking a failure for its value is a bug."""
    pending: Pending[object] = Pending()
    pending.complete(error="TimeoutException")
    pending.complete("value")
    assert pending.error == "TimeoutException"
    with pytest.raises(InvariantViolation, match="TimeoutException"):
        pending.result()


def test_a_killed_thread_never_runs_again() -> None:
    """The thread's process died: no deadline, no step."""

    def main() -> Blocking[None]:
        yield Wait(until_ms=5)
        raise AssertionError

    thread = Thread(main())
    thread.run(0)
    thread.kill()
    assert not thread.run(5)
    assert thread.deadline_ms > 1 << 60


def test_threads_move_each_other_until_all_wait() -> None:
    """One starts another and waits for it; both end in one run, and nothing is left to do."""
    threads = Threads()
    handed: Pending[object] = Pending()
    told: list[str] = []

    def worker() -> Blocking[None]:
        yield Wait(until_ms=5)
        handed.complete("done")
        told.append("worker")

    def main() -> Blocking[None]:
        threads.start(worker())
        yield Wait(handed)
        told.append("main")

    threads.start(main())
    threads.run(0)
    assert (told, threads.deadline_ms) == ([], 5)
    threads.run(5)
    assert (told, threads.deadline_ms) == (["worker", "main"], FOREVER)


def test_killed_threads_are_forgotten() -> None:
    """The process is gone: none of its threads has a deadline any more."""
    threads = Threads()

    def main() -> Blocking[None]:
        yield Wait(until_ms=5)
        raise AssertionError

    threads.start(main())
    threads.run(0)
    threads.kill()
    threads.run(5)
    assert threads.deadline_ms == FOREVER
