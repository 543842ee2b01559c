"""Which work a spec is on a real host."""

import sys
from typing import Final, get_args

from coordinator_sim.live.trogdor import workload_process
from coordinator_sim.live.trogdor.external_command import (
    ExternalCommandWork,
    Program,
    program_of,
)
from coordinator_sim.live.trogdor.host_platform import HostPlatform
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.agent import NoWork, Progress, Work, WorkFailed
from coordinator_sim.trogdor.contract import StartWork
from coordinator_sim.trogdor.fault_work import fault_work
from coordinator_sim.trogdor.specs import NoOpTaskSpec, TaskSpec, class_of
from coordinator_sim.trogdor.workload_specs import ExternalCommandSpec
from coordinator_sim.trogdor.workloads.registry import WorkloadSpec

_GRACE_MS: Final = 180_000
"""How long a workload has to close its clients; Kafka's agent waits for a day.

A producer whose brokers are gone takes `delivery.timeout.ms`, by default 120 s.
"""


def work_on(platform: HostPlatform, start: StartWork, progress: Progress) -> Work:
    """The work of a worker on this host.

    Raises:
        WorkFailed: there is none of that kind here.
    """
    spec = start.spec
    if isinstance(spec, NoOpTaskSpec):
        return NoWork(start, progress)
    if isinstance(spec, ExternalCommandSpec):
        if not platform.allowed.commands:
            name = spec.command[0] if spec.command else "none"
            raise WorkFailed(
                f"this agent runs no commands ({name}): start it with --allow-commands"
            )
        return ExternalCommandWork(platform, start.task_id, program_of(spec), progress)
    if isinstance(spec, get_args(WorkloadSpec)):
        program = workload_program(start.task_id, spec)
        return ExternalCommandWork(platform, start.task_id, program, progress)
    work = fault_work(platform, start, progress)
    if work is None:
        raise WorkFailed(f"{type(spec).__name__} is not run by this agent")
    return work


def workload_program(task_id: str, spec: TaskSpec) -> Program:
    """The process that runs a workload; its arguments tell a ProcessStop which one it is."""
    return Program(
        command=(sys.executable, "-m", workload_process.MODULE, task_id, class_of(spec)),
        workload=jackson.tree(spec),
        grace_ms=_GRACE_MS,
        is_worker=True,
    )
