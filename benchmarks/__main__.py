"""`./dev bench [NAME ...]`: runs the benchmarks named, or all of them, one after the other."""

import importlib
import platform
import sys
from pathlib import Path

from coordinator_sim import __version__

DESCRIPTIONS = {
    "core": "the coordinator alone: heartbeats, commits, joins per CPU-second",
    "consumer_groups": "a group of KIP-848 beside kfake and Kafka (Java, Maven, Go)",
    "assignors": "assignors on large groups",
    "simulator": "heartbeat round trips beside bare simpy",
    "load": "ten million records in a simulated hour beside the events around them",
    "years": "simulated years of deploys without their idle time (minutes)",
    "wire": "messages read and written, beside kio",
    "segments": "records of the offsets log per CPU-second beside kafka-dump-log (also: --spark)",
    "start_up": "a Connect worker's read of its offset topic beside the model (Java, Maven)",
    "ingest": "broker-log lines per CPU-second",
    "append": "a day appended to a month, beside the day alone and the month read again",
    "virtual_hour": "an hour of three aiokafka consumers in virtual time, in CPU-seconds",
    "hash_seeds": "where that hour's clients part under other hash seeds",
    "serve": "serve under load beside a real Kafka and kfake (Go; Java and Maven for Kafka)",
    "proxy": "the conformance proxy beside a plain relay and beside direct (Go)",
    "walk": "calls and modules of a request from socket to answer",
    "loaded_host": "conformance run on a host with four busy processes, ten times (ten minutes)",
    "trogdor": "a task, a heartbeat, an agent of Trogdor, in virtual time and over loopback",
    "cluster": "speed-up of Spark jobs from one standalone worker to two (minutes)",
    "month": "the report of a month of 2,000 groups: CPU-seconds and memory of the whole command",
    "watching": "a watch beside a real broker with 2,000 groups (Java, Maven; seven minutes)",
    "churn": "the Spark churn job on the dense trace form (also: --full in its own module)",
}


def main(names: list[str]) -> int:
    """Run the benchmarks of those names; 2 when a name is unknown."""
    unknown = [name for name in names if name not in DESCRIPTIONS]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}; there are: {', '.join(DESCRIPTIONS)}")
        return 2
    print(f"coordinator-sim {__version__}, Python {platform.python_version()}, {cpu_model()}")
    for name in names or list(DESCRIPTIONS):
        print(f"\n== {name}: {DESCRIPTIONS[name]}")
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


def cpu_model() -> str:
    """The processor's name; the machine's type where the system does not give one."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0]} x{len(models)}" if models else platform.machine()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
