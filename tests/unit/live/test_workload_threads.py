"""Generators as threads of a process."""

import threading
from collections.abc import Callable
from functools import partial

import pytest

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.live.trogdor.workload_threads import WorkloadThreads, now_ms
from coordinator_sim.trogdor.workloads.clients import Interrupted


def waiting(outcome: Pending[str], seen: list[str], over: threading.Event) -> Blocking[None]:
    """A thread that notes an outcome."""
    yield Wait(outcome)
    seen.append(outcome.result())
    over.set()


def calling(
    threads: WorkloadThreads, call: Callable[[], object], seen: list[str]
) -> Blocking[None]:
    """A thread that makes a blocking call again and again."""
    try:
        while True:
            threads.outside(call)
            yield from ()
    except Interrupted:
        seen.append("interrupted")
        raise


def test_thread_goes_on_with_an_outcome() -> None:
    """What completes a result wakes the thread that waits for it."""
    threads, seen, over = WorkloadThreads(), list[str](), threading.Event()
    outcome: Pending[str] = Pending()
    threads.start(waiting(outcome, seen, over))
    threads.call(partial(outcome.complete, "here"))

    assert over.wait(10)
    assert seen == ["here"]


def test_thread_goes_on_at_an_instant() -> None:
    """Not before it."""
    threads, over = WorkloadThreads(), threading.Event()
    began_ms = now_ms()
    instants: list[int] = []

    def sleeping() -> Blocking[None]:
        yield Wait(until_ms=began_ms + 30)
        instants.append(now_ms())
        over.set()

    threads.start(sleeping())
    assert over.wait(10)
    assert instants[0] >= began_ms + 30


def test_interrupted_threads_run_no_further() -> None:
    """Neither one that waits, nor one in a call, nor one that is started later."""
    threads, seen, over = WorkloadThreads(), list[str](), threading.Event()
    outcome: Pending[str] = Pending()
    called = threading.Event()
    threads.start(waiting(outcome, seen, over))
    threads.start(calling(threads, called.set, seen))
    assert called.wait(10)

    threads.interrupt()
    assert seen == ["interrupted"]
    threads.call(partial(outcome.complete, "too late"))
    threads.start(waiting(outcome, seen, over))
    assert not over.wait(0.05)
    assert seen == ["interrupted"]


def test_one_thread_runs_at_a_time() -> None:
    """What a thread does between two waits is not seen half done."""
    threads, over = WorkloadThreads(), threading.Event()
    counts = [0, 0]

    def counting() -> Blocking[None]:
        for _ in range(2_000):
            counts[0] += 1
            assert counts[0] == counts[1] + 1
            counts[1] += 1
            yield Wait(until_ms=0)
        if counts[0] == 4 * 2_000:
            over.set()

    for _ in range(4):
        threads.start(counting())
    assert over.wait(30)


def test_the_end_of_a_workload_is_not_interrupted() -> None:
    """The main thread may wait and call after the interrupt."""
    threads = WorkloadThreads()
    threads.interrupt()

    def ending() -> Blocking[str]:
        yield Wait(until_ms=now_ms() + 5)
        return threads.outside(lambda: "closed")

    assert threads.run(ending()) == "closed"


def test_wait_for_an_outcome_has_an_end() -> None:
    """It returns at the instant."""
    threads = WorkloadThreads()

    def ending() -> Blocking[int]:
        yield from ()
        threads.await_outcome(now_ms() + 5)
        return now_ms()

    began_ms = now_ms()
    assert began_ms + 5 <= threads.run(ending()) < FOREVER


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_bug_in_a_thread_ends_that_thread() -> None:
    """The others can still be interrupted."""
    threads, ended = WorkloadThreads(), threading.Event()

    def broken() -> Blocking[None]:
        yield Wait(until_ms=0)
        ended.set()
        raise LookupError("a bug")

    before = set(threading.enumerate())
    threads.start(broken())
    assert ended.wait(10)
    # The warning about it comes with its end, which is to be within this test.
    for each in set(threading.enumerate()) - before:
        each.join(10)
    threads.interrupt()
