"""Cases: the commands and files that make faults."""

import msgspec

from coordinator_sim.trogdor.contract import Quirks
from coordinator_sim_conformance.trogdor_cases.case import trogdor_case
from coordinator_sim_conformance.trogdor_cases.story import (
    OK,
    WHATEVER,
    Has,
    Starts,
    create,
    create_worker,
    done,
    expect,
    expect_task,
    expect_worker,
    expect_workers,
    running,
    stop,
    stop_worker,
    worker_done,
)
from coordinator_sim_conformance.trogdor_cases.task_specs import (
    FOREVER_MS,
    NODE,
    partition,
    process_stop,
    slow_network,
    unreadable_files,
)
from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Setup, Trogdor

_MOUNT = "/mnt/k"
_CONTROL = f"{_MOUNT}/kibosh_control"
_THREE = ("node01", "node02", "node03")
_LOOPBACK = "127.0.0.1"


def _drop(option: str, node: str) -> str:
    """The command that begins (-A) or ends (-D) to drop what comes from a node."""
    rule = f"INPUT -p tcp -s {_LOOPBACK} -j DROP -m comment --comment {node}"
    return f"sudo iptables {option} {rule}"


@trogdor_case(
    "I01",
    "CoordinatorTest.testNetworkPartitionFault",
    setup=Setup(agents=_THREE, hostnames=dict.fromkeys(_THREE, _LOOPBACK)),
)
def each_node_drops_what_comes_from_other_sides(trogdor: Trogdor) -> None:
    """A node drops what nodes of other sides send, in the order of names, until the task stops."""
    spec = partition(["node01", "node02"], ["node03"], start_ms=0, duration_ms=FOREVER_MS)
    create(trogdor, "netpart", spec)
    others = {"node01": ["node03"], "node02": ["node03"], "node03": ["node01", "node02"]}

    trogdor.at(1_000)
    for node, dropped in others.items():
        expect(node, trogdor.commands(node), [_drop("-A", each) for each in dropped])

    stop(trogdor, "netpart")
    trogdor.at(3_000)
    for node, dropped in others.items():
        undone = trogdor.commands(node)[len(dropped) :]
        expect(node, undone, [_drop("-D", each) for each in dropped])


@trogdor_case("I02", "NetworkPartitionFaultWorker.start", "NetworkPartitionFaultWorker.stop")
def partition_tells_its_name(trogdor: Trogdor) -> None:
    """The status of a partition says whether it is made or taken back, with the task's name."""
    spec = partition([NODE], start_ms=100, duration_ms=2_050)
    create(trogdor, "np", spec)

    trogdor.at(1_101)
    expect_task(trogdor, "np", running(spec, 100, "created network partition np"))
    trogdor.at(3_101)
    expect_task(trogdor, "np", done(spec, 100, 3_100, status="removed network partition np"))


@trogdor_case("I04", "DegradedNetworkFaultWorker.enableTrafficControl")
def rate_alone_is_a_filter_at_the_root(trogdor: Trogdor) -> None:
    """A network that has its rate limited, and no latency, gets one filter at its root."""
    spec = slow_network(device="eth0", rate_kbit=64, start_ms=100, duration_ms=1_000)
    create(trogdor, "d", spec)

    limit = "sudo tc qdisc add dev eth0 root handle 1:0 tbf rate 64kbit burst 1mbit latency 500ms"
    trogdor.at(800)
    expect("commands", trogdor.commands(NODE), [limit])

    trogdor.at(2_000)
    undo = "sudo tc qdisc del dev eth0 root"
    expect("commands", trogdor.commands(NODE), [limit, undo])


def _stop_of_no_process(trogdor: Trogdor) -> None:
    spec = process_stop(NODE, process="Nothing", start_ms=100, duration_ms=2_050)
    create(trogdor, "ps", spec)

    trogdor.at(1_101)
    expect_task(trogdor, "ps", running(spec, 100, "stopped Nothing"))
    trogdor.at(3_101)
    expect_task(trogdor, "ps", done(spec, 100, 3_100, status="resumed Nothing"))


@trogdor_case("I08", "ProcessStopFaultWorker.sendSignals", is_quirk=True)
def process_that_is_not_there_counts_as_stopped(trogdor: Trogdor) -> None:
    """A fault that finds no process to stop says that it has stopped it."""
    _stop_of_no_process(trogdor)


@trogdor_case("I08.2", "FaultWork", quirks=Quirks.FIXED, only_virtual="I08 plays the same story")
def fixed_process_that_is_not_there_ends_the_task_too(trogdor: Trogdor) -> None:
    """With quirks fixed, a fault that finds no process ends by its duration as with Kafka's."""
    _stop_of_no_process(trogdor)


@trogdor_case("I10", "Kibosh.KiboshProcess.KiboshProcess")
def files_cannot_fail_without_kibosh(trogdor: Trogdor) -> None:
    """A worker that is to make files unreadable fails where Kibosh's control file is missing."""
    expect("answer", create_worker(trogdor, NODE, 0, _unreadable("/nowhere")), OK)

    error = Has("Can't find file /nowhere/kibosh_control")
    over = worker_done("foo", WHATEVER, 0, 0, status=WHATEVER, error=error)
    expect_worker(trogdor, NODE, 0, over)


def _two_equal_faults(trogdor: Trogdor) -> None:
    for worker_id in (0, 1):
        create_worker(trogdor, NODE, worker_id, _unreadable(_MOUNT))
    fault = {"type": "unreadable", "prefix": "/f", "errorCode": 5}
    expect("faults", _faults(trogdor), {"faults": [fault, fault]})

    stop_worker(trogdor, NODE, 0)
    expect("faults", _faults(trogdor), {})
    trogdor.at(1)
    stop_worker(trogdor, NODE, 1)

    removed = worker_done("foo", WHATEVER, 0, 0, status="Removed fault foo")
    failed = worker_done(
        "foo", WHATEVER, 0, 1, status="Removing fault foo", error=Starts("Failed to find fault ")
    )
    expect_workers(trogdor, NODE, {0: removed, 1: failed})


_EMPTY_KIBOSH = Setup(files={_CONTROL: b"{}"})


@trogdor_case(
    "I11",
    "Kibosh.KiboshProcess.removeFault",
    setup=_EMPTY_KIBOSH,
    is_quirk=True,
    only_virtual="it wants a file in a place of its own",
)
def equal_faults_are_removed_together(trogdor: Trogdor) -> None:
    """A fault that is taken back takes its equals along, so that their workers fail to."""
    _two_equal_faults(trogdor)


@trogdor_case(
    "I11.2",
    "FaultWork",
    setup=_EMPTY_KIBOSH,
    quirks=Quirks.FIXED,
    only_virtual="it wants a file in a place of its own",
)
def fixed_workers_of_equal_faults_end_too(trogdor: Trogdor) -> None:
    """With quirks fixed, workers with equal faults end as with Kafka's, one with an error."""
    _two_equal_faults(trogdor)


def _unreadable(mount: str) -> Json:
    return unreadable_files(mount=mount, prefix="/f")


def _faults(trogdor: Trogdor) -> Json:
    """The contents of Kibosh's control file; None if there is no file."""
    content = trogdor.file(_CONTROL)
    return None if content is None else msgspec.json.decode(content)
