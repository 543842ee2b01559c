"""The metrics of a server in the text format that Prometheus reads.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/ (text format 0.0.4).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.server.control.views import parked_views
from coordinator_sim.server.metering import BUCKETS_S, Meter

if TYPE_CHECKING:
    from coordinator_sim.server.control.control import Control

_STATES = {
    "Empty": "num_groups_empty",
    "PreparingRebalance": "num_groups_preparing_rebalance",
    "CompletingRebalance": "num_groups_completing_rebalance",
    "Stable": "num_groups_stable",
    "Dead": "num_groups_dead",
}
_APIS = {int(api): api.name for api in ApiKey}


def exposition(control: "Control") -> str:
    """All metrics, one sample per line."""
    return "\n".join((*_requests(control.meter), *_cluster(control), ""))


def _requests(meter: Meter) -> Iterator[str]:
    yield from _head("requests_total", "counter", "Requests answered, by API.")
    for number, api in sorted(meter.apis.items()):
        yield f'coordinator_sim_requests_total{{api="{_name(number)}"}} {api.count}'
    name = "request_duration_seconds"
    yield from _head(name, "histogram", "From a request's last byte to its answer.")
    for number, api in sorted(meter.apis.items()):
        label = f'api="{_name(number)}"'
        total = 0
        for bound, count in zip((*BUCKETS_S, "+Inf"), api.buckets, strict=True):
            total += count
            yield f'coordinator_sim_{name}_bucket{{{label},le="{bound}"}} {total}'
        yield f"coordinator_sim_{name}_sum{{{label}}} {api.seconds:.9f}"
        yield f"coordinator_sim_{name}_count{{{label}}} {api.count}"
    yield from _one("received_bytes_total", "counter", "Of requests.", meter.received_bytes)
    yield from _one("sent_bytes_total", "counter", "Of answers.", meter.sent_bytes)
    yield from _one(
        "connections_total", "counter", "Connections that clients opened.", meter.connection_count
    )


def _cluster(control: "Control") -> Iterator[str]:
    cluster = control.cluster
    now = control.now()
    open_count = len(control.server.connections())
    yield from _one("connections", "gauge", "Connections that are open.", open_count)
    found = [each.coordinator.metrics() for each in cluster.groups.living.values()]
    yield from _head("groups", "gauge", "Groups by their state.")
    for state, field in _STATES.items():
        count = sum(getattr(each, field) for each in found)
        yield f'coordinator_sim_groups{{state="{state}"}} {count}'
    for name, field, text in (
        ("rebalances_total", "group_completed_rebalance_count", "Rebalances completed."),
        ("offset_commits_total", "offset_commit_count", "Offsets committed."),
        ("offset_expirations_total", "offset_expiration_count", "Offsets expired."),
    ):
        yield from _one(name, "counter", text, sum(getattr(each, field) for each in found))
    parked = len(parked_views(cluster, now.group_ms))
    yield from _one("parked_requests", "gauge", "JoinGroup and SyncGroup that wait.", parked)
    size = sum(each.size_bytes for each in cluster.logs.logs())
    yield from _one("log_bytes", "gauge", "Of the records in all logs.", size)
    hits = sum(each.hits for each in cluster.faults.states())
    yield from _one("fault_hits", "gauge", "Of the fault rules that there are.", hits)
    trace = control.tracing.view()
    yield from _one("trace_events_total", "counter", "Events recorded.", trace.events)
    yield from _one(
        "trace_stalls_total", "counter", "Waits for the recording of a trace.", trace.stalls
    )


def _name(number: int) -> str:
    return _APIS.get(number, str(number))


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP coordinator_sim_{name} {text}"
    yield f"# TYPE coordinator_sim_{name} {kind}"


def _one(name: str, kind: str, text: str, value: int) -> Iterator[str]:
    yield from _head(name, kind, text)
    yield f"coordinator_sim_{name} {value}"
