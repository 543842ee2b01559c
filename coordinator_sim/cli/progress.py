"""How far long work is, on a terminal only."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol, TypeVar

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from coordinator_sim.cli.console import PrintableConsole

PATIENCE_S: Final = 2.0
"""Work that takes less time shows no bar, unless told otherwise."""
_Result_co = TypeVar("_Result_co", covariant=True)


class _Job(Protocol[_Result_co]):
    """A job that reports its current step to an optional callback."""

    def __call__(self, *, progress: Callable[[str], None] | None = None) -> _Result_co: ...


def job_status(
    job: _Job[_Result_co], *, is_silent: bool, begins: str = "starting Spark"
) -> _Result_co:
    """Do a job, and show its present step on stderr meanwhile.

    Args:
        job: The work.
        is_silent: Show nothing, as where the output is for machines.
        begins: Its first step.
    """
    errors = PrintableConsole(stderr=True)
    if is_silent or not errors.is_terminal:
        return job()
    with errors.status(begins) as status:
        return job(progress=status.update)


@contextmanager
def progress_bar(
    label: str, total: int, *, patience_s: float = PATIENCE_S
) -> Iterator[Callable[[int], None]]:
    """A function to tell how far the work is, out of `total`; the bar is drawn on stderr.

    Work of less than `patience_s` shows no bar.
    """
    console = PrintableConsole(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=console, transient=True, auto_refresh=False)
    task = bar.add_task(label, total=total)
    started_s = time.monotonic()
    drawn = False

    def update(completed: int) -> None:
        nonlocal drawn
        if not drawn and console.is_terminal and time.monotonic() - started_s >= patience_s:
            bar.start()
            drawn = True
        if drawn:
            bar.update(task, completed=completed, refresh=True)

    try:
        yield update
    finally:
        if drawn:
            bar.stop()
