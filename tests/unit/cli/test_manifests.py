"""`shape --manifest`: what Kubernetes' manifests say becomes a scenario."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.cli.manifests import Manifests
from coordinator_sim.sim.scenario import (
    Behavior,
    ConnectGroupSpec,
    ConsumerGroupSpec,
    CpuTarget,
    Limits,
    PodDisruptionBudget,
    RollOut,
    ScaledObject,
    ScalingPolicy,
    ScalingRules,
    Trigger,
    WorkloadSpec,
    load_scenario,
)
from coordinator_sim.sim.scenario.kubernetes import SHUTDOWN_MS
from tests.command_line import run_here

ORDERS: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders}
spec:
  replicas: 4
  minReadySeconds: 5
  revisionHistoryLimit: 3
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0%}}
  template:
    spec:
      terminationGracePeriodSeconds: 45
      containers:
        - image: orders:1.4
          env:
            - {name: KAFKA_MAX_POLL_INTERVAL_MS, value: "60000"}
            - {name: SPRING_KAFKA_CONSUMER_HEARTBEAT_INTERVAL, value: 2s}
            - {name: KAFKA_PARTITION_ASSIGNMENT_STRATEGY, value: a.b.CooperativeStickyAssignor}
            - {name: LOG_LEVEL, value: info}
            - {name: GROUP, value: orders-app}
          readinessProbe: {initialDelaySeconds: 12, periodSeconds: 5}
          lifecycle: {preStop: {exec: {command: [sh, -c, "sleep 5"]}}}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: orders}
spec:
  scaleTargetRef: {name: orders}
  minReplicaCount: 2
  maxReplicaCount: 12
  advanced:
    horizontalPodAutoscalerConfig:
      behavior: {scaleDown: {policies: [{type: Pods, value: 1, periodSeconds: 300}]}}
  triggers:
    - {type: cron, metadata: {desiredReplicas: "10"}}
    - type: kafka
      metadata: {consumerGroupFromEnv: GROUP, topic: orders, lagThreshold: 2000}
---
kind: Service
metadata: {name: orders}
"""
METADATA: Final = {"consumerGroup": "orders-app", "topic": "orders", "lagThreshold": "2000"}
DEPLOYMENT: Final = "kind: Deployment\nmetadata: {name: a}\nspec: "
CONNECT: Final = """\
kind: KafkaConnect
metadata: {name: cdc}
spec:
  config: {group.id: cdc-workers, scheduled.rebalance.max.delay.ms: 60000, config.storage.topic: c}
---
kind: KafkaConnector
metadata: {name: ledger, labels: {strimzi.io/cluster: cdc}}
spec: {tasksMax: 6}
"""


def written(tmp_path: Path, text: str) -> Path:
    """Return a file of manifests."""
    file = tmp_path / "deploy.yaml"
    file.write_text(text)
    return file


def test_deployment_with_a_scaled_object_becomes_a_workload(tmp_path: Path) -> None:
    """Every field that means something here is in the scenario, and each is told."""
    file, out = written(tmp_path, ORDERS), tmp_path / "mine.json"
    known = ("--topics", "orders=24", "--per-record", "6ms", "--deploys", "20m", "--out", out)
    done = run_here("shape", "--manifest", file, *known)
    assert done.returncode == 0, done.stderr

    scenario = load_scenario(out)
    policy = ScalingPolicy(type="Pods", value=1, period_s=300)
    assert scenario.kubernetes == (
        WorkloadSpec(
            name="orders",
            group_id="orders-app",
            replicas=4,
            max_surge="1",
            max_unavailable="0%",
            readiness_ms=15_000,
            min_ready_s=5,
            shutdown_ms=tuple(each + 5_000 for each in SHUTDOWN_MS),
            termination_grace_period_s=45,
            autoscaler=ScaledObject(
                triggers=(Trigger(metadata=METADATA),),
                min_replica_count=2,
                max_replica_count=12,
                behavior=Behavior(scale_down=ScalingRules(policies=(policy,))),
            ),
        ),
    )
    (group,) = scenario.groups
    assert isinstance(group, ConsumerGroupSpec)
    assert group.assignors == ("cooperative-sticky",)
    assert group.settings == {"heartbeat.interval.ms": "2000", "max.poll.interval.ms": "60000"}
    assert [member.name for member in group.members] == [f"orders-{n}" for n in range(25)]
    assert [each.at_ms for each in scenario.happenings if isinstance(each, RollOut)] == [
        600_000,
        1_800_000,
        3_000_000,
    ]
    read, ignored, assumed, *_ = done.stdout.splitlines()
    assert "minReadySeconds" in read
    assert "KAFKA_MAX_POLL_INTERVAL_MS" in read
    assert ignored == (
        "ignored: Service orders; Deployment orders LOG_LEVEL, GROUP, revisionHistoryLimit, "
        "containers.image; ScaledObject orders triggers.metadata.desiredReplicas"
    )
    assert assumed.startswith("assumed: 10 records/s a partition, 6ms a record")


def test_connect_of_strimzi_becomes_a_pod_set(tmp_path: Path) -> None:
    """Its workers, connectors and settings; the probe is Strimzi's default."""
    out = tmp_path / "cdc.json"
    done = run_here("shape", "--manifest", written(tmp_path, CONNECT), "--out", out)
    assert done.returncode == 0, done.stderr
    scenario = load_scenario(out)
    assert scenario.kubernetes == (
        WorkloadSpec(
            name="cdc-connect",
            group_id="cdc-workers",
            kind="StrimziPodSet",
            replicas=3,
            readiness_ms=60_000,
            pod_disruption_budget=PodDisruptionBudget(min_available="2"),
        ),
    )
    (group,) = scenario.groups
    assert isinstance(group, ConnectGroupSpec)
    assert group.connectors == {"ledger": 6}
    assert group.settings == {"scheduled.rebalance.max.delay.ms": "60000"}
    assert run_here("run", out, "--out", tmp_path / "trace").returncode == 0


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ("--consumers 3", "--manifest says who the members are"),
        ("--pace 30s", "--manifest says who the members are"),
        ("--down 8s", "--manifest says who the members are"),
        ("--per-record 5ms --processing-ms 9", "--per-record 5ms: excludes --processing"),
    ],
)
def test_options_that_a_manifest_excludes_are_refused(
    tmp_path: Path, options: str, refusal: str
) -> None:
    """The manifest says who the members are, and how they are restarted."""
    done = run_here("shape", "--manifest", written(tmp_path, ORDERS), *options.split())
    assert refusal in done.stderr


def test_only_a_manifest_has_a_time_for_each_record() -> None:
    """Without one, processing times are drawn."""
    done = run_here("shape", "--topics", "a=2", "--consumers", "3", "--per-record", "5ms")
    assert "--per-record 5ms: is for --manifest" in done.stderr


def test_connector_keeps_its_cluster_beside_another_kind_of_its_name(tmp_path: Path) -> None:
    """The label of the connector counts, wherever the other stands."""
    text = CONNECT + "---\n" + DEPLOYMENT.replace("name: a", "name: ledger") + "{}\n"
    (connect,) = Manifests(written(tmp_path, text)).workloads()
    assert connect.connectors == {"ledger": 6}


def test_what_a_scenario_lacks_is_told_as_ignored(tmp_path: Path) -> None:
    """A workload without a group, a variable without a value, what a probe asks."""
    secret = {"name": "KAFKA_SESSION_TIMEOUT_MS", "valueFrom": {"secretKeyRef": {"name": "s"}}}
    template = pods(
        env=[secret, {"name": "KAFKA_GROUP_ID", "value": "g"}],
        readinessProbe={"periodSeconds": 5, "failureThreshold": 3},
    )
    web = {**manifest("Deployment", {"replicas": 2}), "metadata": {"name": "web"}}
    scaled = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 9}
    of_web = {**manifest("HorizontalPodAutoscaler", scaled), "metadata": {"name": "web"}}
    items = [manifest("Deployment", {"template": template}), web, of_web]
    found = Manifests(written(tmp_path, json.dumps({"kind": "List", "items": items})))
    (workload,) = found.workloads()
    assert (workload.spec.group_id, workload.settings) == ("g", {})
    left_out = {"(no group id)": None}
    assert found.ignored["Deployment web"] == left_out
    assert found.ignored["HorizontalPodAutoscaler web"] == left_out
    assert set(found.ignored["Deployment app"]) == {
        "KAFKA_SESSION_TIMEOUT_MS (value not in the manifest)",
        "containers.env.valueFrom.secretKeyRef.name",
        "containers.readinessProbe.failureThreshold",
    }
    assert set(found.read) == {"Deployment app"}
    assert "containers.readinessProbe.periodSeconds" in found.read["Deployment app"]


def manifest(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest named `app`."""
    return {"kind": kind, "metadata": {"name": "app"}, "spec": spec}


def pods(**container: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a container
    """Return a template with one container."""
    return {"spec": {"containers": [container]}}


def scaled_on_cpu(cpu: str, target: dict[str, object]) -> str:
    """Return a Deployment that requests so much, and its autoscaler."""
    workload = {"template": pods(resources={"requests": {"cpu": cpu}})}
    scaler = {
        "scaleTargetRef": {"name": "app"},
        "metrics": [{"resource": {"name": "cpu", "target": target}}],
    }
    items = [manifest("Deployment", workload), manifest("HorizontalPodAutoscaler", scaler)]
    return json.dumps({"kind": "List", "items": items})


def test_list_with_an_autoscaler_on_cpu_is_read(tmp_path: Path) -> None:
    """As `kubectl get -o yaml` prints it; the pod's name makes static members, which are told."""
    own_name = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    template = pods(
        resources={"requests": {"cpu": "250m"}},
        env=[{"name": "KAFKA_GROUP_INSTANCE_ID", **own_name}, {"name": "KAFKA_GROUP_ID"}],
    )
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
    scaler = {
        "scaleTargetRef": {"kind": "StatefulSet", "name": "app"},
        "maxReplicas": 6,
        "metrics": [{"type": "Resource", "resource": cpu}],
    }
    workload = {"template": template, "replicas": 2, "podManagementPolicy": "Parallel"}
    items = [manifest("StatefulSet", workload), manifest("HorizontalPodAutoscaler", scaler)]
    file, out = written(tmp_path, json.dumps({"kind": "List", "items": items})), tmp_path / "a.json"
    done = run_here("shape", "--manifest", file, "--out", out)
    assert "assumed: group app, topic app of 6 partitions" in done.stdout
    scenario = load_scenario(out)
    (spec,) = scenario.kubernetes
    limits = Limits(max_replicas=6)
    assert spec.autoscaler == CpuTarget(limits=limits, utilization=60, request_milli=250)
    assert (spec.kind, spec.pod_management) == ("StatefulSet", "Parallel")
    (group,) = scenario.groups
    assert isinstance(group, ConsumerGroupSpec)
    assert [each.instance_id for each in group.members] == [f"app-{n}" for n in range(6)]


def budget(name: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a budget
    """Return a budget."""
    return {"kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def guarded(tmp_path: Path, *budgets: dict[str, Any], labels: dict[str, str]) -> Manifests:
    """Return a Deployment with these labels on its pods, and budgets beside it."""
    template = pods() | {"metadata": {"labels": labels}}
    items = [manifest("Deployment", {"template": template}), *budgets]
    return Manifests(written(tmp_path, json.dumps({"kind": "List", "items": items})))


@pytest.mark.parametrize("field", [{"minAvailable": 2}, {"maxUnavailable": "30%"}])
def test_budget_that_selects_the_pods_is_the_workloads_own(
    tmp_path: Path, field: dict[str, int | str]
) -> None:
    """Another one is told as ignored; what an unready pod may do is not simulated."""
    selector = {"matchLabels": {"app": "orders"}}
    own = budget("own", selector=selector, unhealthyPodEvictionPolicy="AlwaysAllow", **field)
    other = budget("web", selector={"matchLabels": {"app": "web"}}, minAvailable=1)
    found = guarded(tmp_path, own, other, labels={"app": "orders", "tier": "back"})
    (workload,) = found.workloads()

    minimum, maximum = field.get("minAvailable"), field.get("maxUnavailable")
    assert workload.spec.pod_disruption_budget == PodDisruptionBudget(
        min_available=None if minimum is None else str(minimum),
        max_unavailable=None if maximum is None else str(maximum),
    )
    assert list(found.read["PodDisruptionBudget own"]) == ["selector.matchLabels", *field]
    assert found.ignored["PodDisruptionBudget own"] == {"unhealthyPodEvictionPolicy": None}
    assert "selects no pods" in next(iter(found.ignored["PodDisruptionBudget web"]))


EXPRESSIONS: Final = st.fixed_dictionaries(
    {
        "key": st.sampled_from("ab"),
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
        "values": st.lists(st.sampled_from("xy"), min_size=1, max_size=2),
    }
)
LABELS: Final = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))


@settings(max_examples=60)
@given(wanted=LABELS, expressions=st.lists(EXPRESSIONS, max_size=2), labels=LABELS)
def test_selectors_match_as_kubernetes_says(
    tmp_path_factory: pytest.TempPathFactory,
    wanted: dict[str, str],
    expressions: list[dict[str, Any]],
    labels: dict[str, str],
) -> None:
    """All of the labels and of the expressions must hold; NotIn holds without the label."""
    value = {key: labels.get(key, "") for key in "ab"}
    holds = {
        "In": lambda each: value[each["key"]] in each["values"],
        "NotIn": lambda each: value[each["key"]] not in each["values"],
        "Exists": lambda each: value[each["key"]] != "",
        "DoesNotExist": lambda each: value[each["key"]] == "",
    }
    selector = {"matchLabels": wanted, "matchExpressions": expressions}
    one = budget("one", selector=selector, maxUnavailable=1)
    found = guarded(tmp_path_factory.mktemp("m"), one, labels=labels).workloads()[0].spec

    is_selected = wanted.items() <= labels.items() and all(
        holds[each["operator"]](each) for each in expressions
    )
    assert (found.pod_disruption_budget is not None) == is_selected


def test_budget_of_connect_replaces_strimzis_own(tmp_path: Path) -> None:
    """Strimzi's takes a number of its template; another selects the pods by Strimzi's labels."""
    template = CONNECT.replace(
        "spec:\n  config",
        "spec:\n  template: {podDisruptionBudget: {maxUnavailable: 2}}\n  config",
        1,
    )
    (connect,) = Manifests(written(tmp_path, template)).workloads()
    assert connect.spec.pod_disruption_budget == PodDisruptionBudget(min_available="1")

    selector = {"matchLabels": {"strimzi.io/cluster": "cdc", "strimzi.io/kind": "KafkaConnect"}}
    own = json.dumps(budget("own", selector=selector, minAvailable=3))
    found = Manifests(written(tmp_path, f"{CONNECT}---\n{own}\n"))
    (connect,) = found.workloads()
    assert connect.spec.pod_disruption_budget == PodDisruptionBudget(min_available="3")
    assert "BUDGET_GENERATION=false" in " ".join(found.ignored["KafkaConnect cdc"])


def test_budget_of_another_namespace_selects_nothing(tmp_path: Path) -> None:
    """Nor does it make a second one; no namespace is the default one."""
    selector = {"matchLabels": {"app": "orders"}}
    own = budget("own", selector=selector, minAvailable=2)
    other = budget("other", selector=selector, minAvailable=1)
    own["metadata"]["namespace"], other["metadata"]["namespace"] = "default", "b"
    found = guarded(tmp_path, own, other, labels={"app": "orders"})
    (workload,) = found.workloads()

    assert workload.spec.pod_disruption_budget == PodDisruptionBudget(min_available="2")
    assert "selects no pods" in next(iter(found.ignored["PodDisruptionBudget other"]))


ALL_PODS: Final = "---\nkind: PodDisruptionBudget\nmetadata: {name: %s}\nspec: {selector: {%s}%s}\n"


@settings(max_examples=40)
@given(
    replicas=st.integers(0, 50),
    strategy=st.sampled_from(["RollingUpdate", "Recreate"]),
    surge=st.integers(0, 20) | st.integers(0, 100).map("{}%".format),
    grace_s=st.integers(0, 600),
    probing=st.tuples(st.integers(0, 90), st.integers(1, 30), st.integers(1, 4)),
)
def test_probes_and_strategies_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory,
    replicas: int,
    strategy: str,
    surge: int | str,
    grace_s: int,
    probing: tuple[int, int, int],
) -> None:
    """A pod is Ready at the probe that an hour of probing, one a period, finds."""
    delay_s, period_s, needed = probing
    probe = {
        "initialDelaySeconds": delay_s,
        "periodSeconds": period_s,
        "successThreshold": needed,
    }
    template = pods(readinessProbe=probe)
    template["spec"]["terminationGracePeriodSeconds"] = grace_s
    rolling = {"type": strategy, "rollingUpdate": {"maxSurge": surge}}
    spec = {"replicas": replicas, "strategy": rolling, "template": template}
    file = written(tmp_path_factory.mktemp("m"), json.dumps(manifest("Deployment", spec)))
    (found,) = Manifests(file).workloads()
    probed_s = [each for each in range(period_s, 3_600, period_s) if each >= delay_s]
    assert found.spec == WorkloadSpec(
        name="app",
        group_id="",
        replicas=replicas,
        strategy=strategy,  # type: ignore[arg-type] # drawn from its values
        max_surge=str(surge),
        readiness_ms=1_000 * probed_s[needed - 1],
        termination_grace_period_s=grace_s,
    )


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("a: [", "no YAML"),
        ("- 1", "a document has no kind or no metadata.name"),
        ("kind: Service\nmetadata: {name: a}", "no Deployment, StatefulSet or KafkaConnect"),
        (
            DEPLOYMENT + "{replicas: many}",
            "Deployment a: replicas: Expected `int`, got `str`",
        ),
        (
            DEPLOYMENT + "{strategy: {type: Canary}}",
            "Deployment a: strategy.type: Invalid enum value 'Canary'",
        ),
        (
            DEPLOYMENT + "{strategy: {rollingUpdate: {maxSurge: b}}}",
            "max_surge of workload 'a'='b': must be a number",
        ),
        (
            DEPLOYMENT + "{replicas: 100000000}",
            "replicas of workload 'a'=100000000: must be from 0 to 10000",
        ),
        (
            ORDERS.replace("maxReplicaCount: 12", "maxReplicaCount: 100000000"),
            "the autoscaler's maximum of workload 'orders'=100000000: must be from 0 to 10000",
        ),
        (
            scaled_on_cpu("inf", {"averageUtilization": 60}),
            "Deployment app: cpu 'inf': wants 500m, or 0.5",
        ),
        (
            scaled_on_cpu("1", {"averageValue": "500m"}),
            "HorizontalPodAutoscaler app: metrics.resource.target.averageUtilization is missing",
        ),
        (ORDERS.replace("lagThreshold: 2000", "lagThreshold: -1"), "lagThreshold=-1"),
        (ORDERS + "---\n" + ORDERS, "Deployment orders is there twice"),
        (
            ORDERS + ALL_PODS % ("one", "", "") + ALL_PODS % ("two", "", ""),
            "Deployment orders: the PodDisruptionBudgets one and two both select its pods",
        ),
        (
            ORDERS + ALL_PODS % ("one", "matchExpressions: [{key: a, operator: Gt}]", ""),
            "PodDisruptionBudget one: selector.matchExpressions.operator: Invalid enum value 'Gt'",
        ),
        (
            ORDERS + ALL_PODS % ("one", "", ", minAvailable: half"),
            "pod_disruption_budget of workload 'orders'='half': give min_available",
        ),
    ],
)
def test_bad_manifest_is_refused_in_one_line(tmp_path: Path, text: str, refusal: str) -> None:
    """The line names the manifest, the field and the value."""
    done = run_here("shape", "--manifest", written(tmp_path, text))
    assert done.returncode in {1, 2}  # of data, or of values
    assert refusal in done.stderr
    assert done.stderr.count("\n") == 1
