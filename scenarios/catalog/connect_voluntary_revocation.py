"""All workers stop their work voluntarily and are assigned all of it again.

The only broker is away for 8 s, which is less than the workers' session of 30 s. Without a
coordinator for `heartbeat.interval.ms` each worker stops all that it runs. When the broker is back
nobody has left: the leader finds all work unowned, takes it for undelivered and assigns it anew,
each task to the worker that ran it or to another.

Look at: everything that was stopped is started again in one generation, without a delay
(KAFKA-9851, where a worker thought that it still ran what it had given up).
"""

from typing import Final

from coordinator_sim.sim.scenario import ConnectGroupSpec, CrashBroker, Scenario, WorkerSpec

SCENARIO: Final = Scenario(
    name="connect-voluntary-revocation",
    title="Connect workers give up their work and get it back",
    story="The only broker is away from 60 s to 68 s; the workers stop their work after three to "
    "six seconds, keep their membership, and start it again afterwards.",
    duration_ms=120_000,
    brokers=1,
    broker_settings={"offsets.topic.num.partitions": "1"},
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(
                WorkerSpec(name="worker-1"),
                WorkerSpec(name="worker-2", start_ms=10_000),
            ),
            connectors={"jdbc-orders": 3, "s3-archive": 2},
            settings={"session.timeout.ms": "30000"},
        ),
    ),
    happenings=(CrashBroker(at_ms=60_000, broker=1, for_ms=8_000),),
)
