"""Kubernetes manifests as workloads of a scenario, with Strimzi's Connect clusters.

Fields are looked up by their paths; what was looked up and what was not is told beside the result.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
from coordinator_sim.cli.settings_files import settings_of, yaml_documents
from coordinator_sim.errors import DataError
from coordinator_sim.sim.autoscaling.hpa import Behavior, Limits
from coordinator_sim.sim.autoscaling.keda import KafkaMetadata, ScaledObject, Trigger
from coordinator_sim.sim.scenario.kubernetes import (
    SHUTDOWN_MS,
    Autoscaler,
    CpuTarget,
    PodDisruptionBudget,
    WorkloadSpec,
)
from coordinator_sim.sim.scenario.settings import CONNECT_PROTOCOL, SETTINGS, STRATEGY, Scope
from coordinator_sim.sim.scenario.topology import DeployedGroup

KINDS: Final = (
    *("Deployment", "StatefulSet", "HorizontalPodAutoscaler"),
    *("ScaledObject", "KafkaConnect", "KafkaConnector", "PodDisruptionBudget"),
)
_OF_CLIENTS: Final = ("Deployment", "StatefulSet", "KafkaConnect")
_OF_CONSUMERS: Final = (*SETTINGS[Scope.CONSUMER], STRATEGY, "group.id", "group.instance.id")
_OF_WORKERS: Final = (*SETTINGS[Scope.CONNECT], CONNECT_PROTOCOL, "group.id")
_BUDGET: Final = "PodDisruptionBudget"
_OWN_BUDGET: Final = (
    "Strimzi's own PodDisruptionBudget (assumed: STRIMZI_POD_DISRUPTION_BUDGET_GENERATION=false)"
)
_SLEEP: Final = re.compile(r"\bsleep (\d+)\b")
_POD: Final = "template.spec"
_CONNECT_DELAY_S: Final = 60
"""Strimzi's default of `readinessProbe.initialDelaySeconds` of a KafkaConnect."""
_MetricType = Literal["AverageValue", "Value"]
T = TypeVar("T")


class Fields:
    """A part of a manifest: its fields by path, and which of them were looked up.

    Args:
        where: File, kind and name, for messages.
        raw: The part.
        path: Path of the part, with a dot behind it.
        read: Paths that were looked up; shared by the parts of a manifest.
    """

    def __init__(
        self, where: str, raw: object, path: str = "", read: list[str] | None = None
    ) -> None:
        self.where = where
        self._raw = raw
        self._path = path
        self.read: list[str] = [] if read is None else read

    def get(self, path: str, kind: Any, default: T) -> T:  # noqa: ANN401 - a type, or a Literal
        """Return the field at a path, or the default where there is none.

        Raises:
            DataError: the field is of another type.
        """
        node = self._raw
        for key in path.split("."):
            node = node.get(key) if isinstance(node, dict) else None
        if node is None:
            return default
        self.read.append(self._path + path)
        try:
            found: T = msgspec.convert(_text(node) if kind is str else node, kind)
        except msgspec.ValidationError as error:
            raise DataError(f"{self.where}: {self._path}{path}: {error}") from None
        return found

    def each(self, path: str) -> "list[Fields]":
        """Return the entries of a list as parts."""
        found: list[dict[str, Any]] = self.get(path, list[dict[str, Any]], [])
        if found:
            self.read.remove(self._path + path)
        return [Fields(self.where, one, f"{self._path}{path}.", self.read) for one in found]

    def has(self, path: str) -> bool:
        """Return whether there is a part at a path, of which the fields are still to be read."""
        found: dict[str, Any] = self.get(path, dict[str, Any], {})
        if found:
            self.read.remove(self._path + path)
        return bool(found)

    def unread(self, node: object = None, path: str = "") -> Iterator[str]:
        """Yield the paths that were not looked up."""
        node = self._raw if not path else node
        if path in self.read or path in {"selector", "template.metadata"}:
            return
        if isinstance(node, dict):
            for key, value in node.items():
                yield from self.unread(value, f"{path}.{key}" if path else str(key))
        elif isinstance(node, list) and node and all(isinstance(each, dict) for each in node):
            for value in node:
                yield from self.unread(value, path)
        else:
            yield path


class Manifests:
    """The manifests of a file: several documents, or a List as `kubectl get -o yaml` prints.

    Args:
        file: The file.

    Attributes:
        read: Paths of the fields that were looked up, by kind and name of the manifest.
        ignored: Those that were not.

    Raises:
        DataError: the file is no YAML, or a document no manifest.
        MissingDependencyError: the package that reads YAML is not installed.
        OSError: the file cannot be read.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.read: dict[str, dict[str, None]] = {}
        self.ignored: dict[str, dict[str, None]] = {}
        self._specs: dict[tuple[str, str], Fields] = {}
        self._clusters: dict[str, str] = {}
        """The KafkaConnect of each KafkaConnector."""
        self._guarded: dict[str, set[tuple[str, str]]] = {}
        """The workloads whose pods each budget selects."""
        self._namespaces: dict[tuple[str, str], str] = {}
        """The namespace of each manifest."""
        for document in yaml_documents(file, file.read_text("utf-8", errors="replace")):
            whole = Fields(str(file), document)
            items = whole.each("items") if whole.get("kind", str, "") == "List" else [whole]
            for each in items if document is not None else ():
                self._take(each)

    def _tell(self, where: str, path: str, *, is_read: bool) -> None:
        told = self.read if is_read else self.ignored
        told.setdefault(where, {})[path.removeprefix(f"{_POD}.")] = None

    def _take(self, document: Fields) -> None:
        kind, name = document.get("kind", str, ""), document.get("metadata.name", str, "")
        if not kind or not name:
            raise DataError(f"{self._file}: a document has no kind or no metadata.name")
        if kind not in KINDS:
            self._tell(kind, name, is_read=False)
            return
        where = f"{self._file}: {kind} {name}"
        if (kind, name) in self._specs:
            raise DataError(f"{where} is there twice; leave one out")
        if kind == "KafkaConnector":
            labels: dict[str, str] = document.get("metadata.labels", dict[str, str], {})
            self._clusters[name] = labels.get("strimzi.io/cluster", "")
        self._specs[kind, name] = Fields(where, document.get("spec", dict[str, Any], {}))
        self._namespaces[kind, name] = document.get("metadata.namespace", str, "default")

    def workloads(self) -> list[DeployedGroup]:
        """Return the workloads of Kafka's clients.

        Of several Deployments and StatefulSets those count that have a Kafka trigger, or a variable
        with a group id; a single one always does.

        Raises:
            DataError: a field is wrong, or there is no such workload.
        """
        found = {
            (kind, name): self._connect(name, spec)
            if kind == "KafkaConnect"
            else self._pods(kind, name, spec)
            for (kind, name), spec in self._specs.items()
            if kind in _OF_CLIENTS
        }
        if len(found) > 1:
            found = {key: each for key, each in found.items() if each.spec.group_id}
        if not found:
            raise DataError(
                f"{self._file}: no Deployment, StatefulSet or KafkaConnect of a Kafka client; of "
                "several those count that have a kafka trigger, or a variable like KAFKA_GROUP_ID"
            )
        left_out = {key for key in self._specs if key[0] in _OF_CLIENTS and key not in found}
        for (kind, name), spec in self._specs.items():
            of = spec.get("scaleTargetRef.kind", str, "Deployment")
            scaled = (of, spec.get("scaleTargetRef.name", str, ""))
            if not left_out.isdisjoint([(kind, name), scaled]):
                self.read.pop(f"{kind} {name}", None)
                self.ignored[f"{kind} {name}"] = {"(no group id)": None}
                continue
            if kind == _BUDGET and found.keys().isdisjoint(self._guarded.get(name, ())):
                self.ignored[f"{kind} {name}"] = {"(selects no pods of these workloads)": None}
                continue
            for path in spec.read:
                if path != "config" and ".env." not in path:
                    self._tell(f"{kind} {name}", path, is_read=True)
            for path in spec.unread():
                self._tell(f"{kind} {name}", path, is_read=False)
        return list(found.values())

    def _pods(self, kind: str, name: str, spec: Fields) -> DeployedGroup:
        containers = spec.each(f"{_POD}.containers")
        variables = self._variables(f"{kind} {name}", containers)
        given = settings_of({_spring(name): text for name, text in variables.items()})
        settings = {key: text for key, text in given.settings.items() if key in _OF_CONSUMERS}
        settings.pop("enable.auto.commit", None)
        used = {given.written.get(each, each) for each in settings}
        for each in variables:
            self._tell(f"{kind} {name}", each, is_read=_spring(each) in used)
        scaler = self._autoscaler(kind, name, variables, containers)
        triggers = scaler.triggers if isinstance(scaler, ScaledObject) else ()
        named = [each.metadata.get("topic", "").split(",") for each in triggers]
        groups = [each.metadata.get("consumerGroup", "") for each in triggers]
        if STRATEGY in settings:
            settings[STRATEGY] = ",".join(map(_assignor, settings[STRATEGY].split(",")))
        sleep_ms = 1_000 * max(map(_pre_stop_s, containers), default=0)
        probed = [each for each in containers if each.has("readinessProbe")]
        strategy, surge = "strategy.type", "strategy.rollingUpdate"
        workload = WorkloadSpec(
            name=name,
            group_id=next(filter(None, (*groups, settings.pop("group.id", ""))), ""),
            kind="Deployment" if kind == "Deployment" else "StatefulSet",
            replicas=spec.get("replicas", int, 1),
            strategy=spec.get(strategy, Literal["RollingUpdate", "Recreate"], "RollingUpdate"),
            max_surge=spec.get(f"{surge}.maxSurge", str, "25%"),
            max_unavailable=spec.get(f"{surge}.maxUnavailable", str, "25%"),
            pod_management=spec.get(
                "podManagementPolicy", Literal["OrderedReady", "Parallel"], "OrderedReady"
            ),
            readiness_ms=max((_probed_ms(each) for each in probed), default=0),
            min_ready_s=spec.get("minReadySeconds", int, 0),
            shutdown_ms=tuple(each + sleep_ms for each in SHUTDOWN_MS),
            termination_grace_period_s=spec.get(f"{_POD}.terminationGracePeriodSeconds", int, 30),
            autoscaler=scaler,
            pod_disruption_budget=self._budget(kind, name, spec, "template.metadata.labels"),
        )
        return DeployedGroup(
            spec=workload,
            topics=tuple(dict.fromkeys(topic for each in named for topic in each if topic)),
            settings=settings,
        )

    def _variables(self, where: str, containers: list[Fields]) -> dict[str, str]:
        """The variables with their values, or with the fields that they come from."""
        found: dict[str, str] = {}
        for env in (each for one in containers for each in one.each("env")):
            source: str | None = env.get("valueFrom.fieldRef.fieldPath", str, None)
            name, value = env.get("name", str, ""), env.get("value", str, source)
            if value is None:
                self._tell(where, f"{name} (value not in the manifest)", is_read=False)
            else:
                found[name] = value
        return found

    def _autoscaler(
        self, kind: str, name: str, variables: Mapping[str, str], containers: list[Fields]
    ) -> Autoscaler | None:
        for (scaler, _), spec in self._specs.items():
            target = spec.get("scaleTargetRef.name", str, "")
            if (spec.get("scaleTargetRef.kind", str, "Deployment"), target) != (kind, name):
                continue
            found = _keda(spec, variables) if scaler == "ScaledObject" else _hpa(spec, containers)
            if found is not None:
                return found
        return None

    def _budget(
        self, kind: str, name: str, spec: Fields, path: str, made: Mapping[str, str] | None = None
    ) -> PodDisruptionBudget | None:
        """The budget that selects a workload's pods: by labels at a path, and those `made` for it.

        A budget selects pods of its own namespace only.

        Source: kubernetes 1.35, EvictionREST.Create, which refuses pods of two budgets.
        """
        namespace = self._namespaces[kind, name]
        budgets = {
            key[1]: each
            for key, each in self._specs.items()
            if key[0] == _BUDGET and self._namespaces[key] == namespace
        }
        labels = {**spec.get(path, dict[str, str], {}), **(made or {})} if budgets else {}
        chosen = [own for own, each in budgets.items() if _selects(each, labels)]
        if len(chosen) > 1:
            raise DataError(
                f"{spec.where}: the PodDisruptionBudgets {' and '.join(chosen)} both select its "
                "pods, and Kubernetes then evicts none; leave one out"
            )
        for own in chosen:
            self._guarded.setdefault(own, set()).add((kind, name))
            return PodDisruptionBudget(
                min_available=budgets[own].get("minAvailable", str, None),
                max_unavailable=budgets[own].get("maxUnavailable", str, None),
            )
        return None

    def _connect(self, name: str, spec: Fields) -> DeployedGroup:
        """A Connect cluster. Strimzi makes a budget for it, in pods: it has no scale.

        Beside a budget of the user's that one is left out: with both nothing could be evicted.

        Source: strimzi, PodDisruptionBudgetUtils.createCustomControllerPodDisruptionBudget.
        """
        config: dict[str, object] = spec.get("config", dict[str, object], {})
        settings = {key: str(_text(config[key])) for key in config if key in _OF_WORKERS}
        for key in config:
            self._tell(f"KafkaConnect {name}", f"config.{key}", is_read=key in settings)
        own_id = settings.pop("group.id", "connect-cluster")
        grace = "template.pod.terminationGracePeriodSeconds"
        replicas = spec.get("replicas", int, 3)
        labels = {"cluster": name, "name": f"{name}-connect", "kind": "KafkaConnect"}
        made = {f"strimzi.io/{key}": text for key, text in labels.items()}
        missing = spec.get("template.podDisruptionBudget.maxUnavailable", int, 1)
        own = PodDisruptionBudget(min_available=str(max(replicas - missing, 0)))
        path = "template.pod.metadata.labels"
        given = self._budget("KafkaConnect", name, spec, path, made)
        if given is not None:
            self._tell(f"KafkaConnect {name}", _OWN_BUDGET, is_read=False)
        return DeployedGroup(
            spec=WorkloadSpec(
                name=f"{name}-connect",
                group_id=spec.get("groupId", str, own_id),
                kind="StrimziPodSet",
                replicas=replicas,
                readiness_ms=_probed_ms(spec, _CONNECT_DELAY_S),
                termination_grace_period_s=spec.get(grace, int, 30),
                pod_disruption_budget=given or own,
            ),
            settings=settings,
            connectors={
                own: each.get("tasksMax", int, 1)
                for (kind, own), each in self._specs.items()
                if kind == "KafkaConnector" and self._clusters[own] == name
            },
        )


def _selects(budget: Fields, labels: Mapping[str, str]) -> bool:
    """Return whether a budget's selector matches; an empty one matches all, none matches nothing.

    Source: apimachinery, LabelSelectorAsSelector.
    """
    wanted: dict[str, str] = budget.get("selector.matchLabels", dict[str, str], {})
    others = budget.each("selector.matchExpressions")
    if not wanted and not others:
        return budget.get("selector", dict[str, Any] | None, None) is not None
    matched = [_holds(each, labels) for each in others]
    return all(labels.get(key) == text for key, text in wanted.items()) and all(matched)


def _holds(expression: Fields, labels: Mapping[str, str]) -> bool:
    label = labels.get(expression.get("key", str, ""))
    values: list[str] = expression.get("values", list[str], [])
    match expression.get("operator", Literal["In", "NotIn", "Exists", "DoesNotExist"], "In"):
        case "In":
            return label in values
        case "NotIn":
            return label not in values
        case "Exists":
            return label is not None
        case _:
            return label is None


def _keda(spec: Fields, variables: Mapping[str, str]) -> ScaledObject | None:
    triggers: list[Trigger] = []
    for each in spec.each("triggers"):
        kind = each.get("type", str, "")
        if kind not in {"kafka", "apache-kafka"}:
            continue
        metadata: dict[str, str] = {}
        for name in (field.encode_name for field in msgspec.structs.fields(KafkaMetadata)):
            variable = each.get(f"metadata.{name}FromEnv", str, "")
            text = each.get(f"metadata.{name}", Any, variables.get(variable))
            if text is not None:
                metadata[name] = str(_text(text))
        metric_type = each.get("metricType", _MetricType, "AverageValue")
        trigger = {"metadata": metadata, "type": kind, "metric_type": metric_type}
        triggers.append(msgspec.convert(trigger, Trigger))
    if not triggers:
        return None
    behavior = "advanced.horizontalPodAutoscalerConfig.behavior"
    return ScaledObject(
        triggers=tuple(triggers),
        polling_interval_s=spec.get("pollingInterval", int, 30),
        cooldown_period_s=spec.get("cooldownPeriod", int, 300),
        initial_cooldown_period_s=spec.get("initialCooldownPeriod", int, 0),
        idle_replica_count=spec.get("idleReplicaCount", int | None, None),
        min_replica_count=spec.get("minReplicaCount", int | None, None),
        max_replica_count=spec.get("maxReplicaCount", int, 100),
        behavior=_behavior(spec, behavior),
    )


def _hpa(spec: Fields, containers: list[Fields]) -> CpuTarget | None:
    for metric in spec.each("metrics"):
        if metric.get("resource.name", str, "") == "cpu":
            target = "resource.target.averageUtilization"
            utilization: int | None = metric.get(target, int, None)
            if utilization is None:
                raise DataError(
                    f"{spec.where}: metrics.{target} is missing: of cpu only a utilization is "
                    "simulated; give one, or leave the HorizontalPodAutoscaler out"
                )
            requests = [each.get("resources.requests.cpu", str, "0") for each in containers]
            milli = sum(_milli(each, text) for each, text in zip(containers, requests, strict=True))
            return CpuTarget(
                limits=Limits(
                    min_replicas=spec.get("minReplicas", int, 1),
                    max_replicas=spec.get("maxReplicas", int, 1),
                    behavior=_behavior(spec, "behavior"),
                ),
                utilization=utilization,
                request_milli=milli or 1_000,
            )
    return None


def _milli(container: Fields, quantity: str) -> int:
    """Return thousandths of a CPU."""
    try:
        return int(quantity[:-1]) if quantity.endswith("m") else round(float(quantity) * 1_000)
    except (ValueError, OverflowError):
        raise DataError(f"{container.where}: cpu {quantity!r}: wants 500m, or 0.5") from None


def _behavior(spec: Fields, path: str) -> Behavior | None:
    """Return a behavior of Kubernetes by the names of ours."""
    raw: dict[str, object] = spec.get(path, dict[str, object], {})
    try:
        return msgspec.convert(_renamed(raw), Behavior, strict=False) if raw else None
    except msgspec.ValidationError as error:
        raise DataError(f"{spec.where}: {path}: {error}") from None


def _renamed(node: object) -> object:
    if isinstance(node, dict):
        names = {key: re.sub("([A-Z])", r"_\1", str(key)).lower() for key in node}
        return {names[key].replace("_seconds", "_s"): _renamed(node[key]) for key in node}
    return [_renamed(each) for each in node] if isinstance(node, list) else node


def _probed_ms(container: Fields, delay_s: int = 0) -> int:
    """Return the time to the last of the probes that make a pod Ready; there is one a period."""
    period_s = max(container.get("readinessProbe.periodSeconds", int, 10), 1)
    delay_s = container.get("readinessProbe.initialDelaySeconds", int, delay_s)
    further = container.get("readinessProbe.successThreshold", int, 1) - 1
    return 1_000 * period_s * (max(-(-delay_s // period_s), 1) + further)


def _spring(variable: str) -> str:
    """Return the property that a variable of Spring Boot binds to; other names as they are."""
    is_springs = variable.startswith("SPRING_KAFKA_")
    return variable.lower().replace("_", ".") if is_springs else variable


def _pre_stop_s(container: Fields) -> int:
    """Return for how long a `preStop` hook sleeps before SIGTERM."""
    command = " ".join(container.get("lifecycle.preStop.exec.command", list[str], []))
    found = _SLEEP.search(command)
    return container.get("lifecycle.preStop.sleep.seconds", int, int(found[1]) if found else 0)


def _assignor(java_class: str) -> str:
    """Return the name of one of Kafka's assignors by its class."""
    own = java_class.strip().rpartition(".")[2]
    names = {name.replace("-", ""): name for name in CONSUMER_ASSIGNORS}
    return names.get(own.removesuffix("Assignor").lower(), own)


def _text(value: object) -> object:
    """Return a number or a truth value as YAML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value
