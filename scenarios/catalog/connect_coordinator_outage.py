"""The broker is out of reach for longer than a worker's session: the cluster idles for minutes.

A Connect cluster of one worker cannot reach its coordinator for 60 s. When it notices, it gives
up all its work, because somebody else might be given it. When the broker is back, the worker's id
is unknown, it joins anew and leads again. Its assignor still remembers the work it handed out,
finds that nobody has it and takes it for lost: nothing runs until the scheduled delay is over.

Look at: the delay of five minutes (the default) in the assignment of a cluster that is complete;
the work stopped for more than five minutes because of one minute without a broker.
"""

from typing import Final

from coordinator_sim.sim.scenario import ConnectGroupSpec, PartitionNetwork, Scenario, WorkerSpec

SCENARIO: Final = Scenario(
    name="connect-coordinator-outage",
    title="A Connect worker without coordinator for longer than its session",
    story="The only broker cannot be reached from 60 s to 120 s; the only worker stops its work, "
    "and then its own leader makes it wait for the whole scheduled delay.",
    duration_ms=450_000,
    brokers=1,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(WorkerSpec(name="worker-1"),),
            connectors={"jdbc-orders": 2},
        ),
    ),
    happenings=(PartitionNetwork(at_ms=60_000, broker=1, for_ms=60_000),),
)
