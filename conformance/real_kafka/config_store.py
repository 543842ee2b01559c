"""Compares Connect's own config store with ours, over random records.

A record is read by `KafkaConfigBackingStore` of a real release (ConfigStore.java) and by
`connect.config_table`; both report their snapshot, exception and listener calls.
"""

import json
import os
import subprocess
from base64 import b64encode
from random import Random
from typing import Final

from coordinator_sim.connect.effects import TargetState, TopicRecord
from coordinator_sim.connect.exceptions import JavaException
from coordinator_sim.connect.stores.config_records import (
    SESSION_KEY_KEY,
    RestartRequest,
    SessionKey,
    commit_tasks_key,
    commit_value,
    connector_key,
    logger_cluster_key,
    logger_level_value,
    properties_value,
    restart_key,
    restart_value,
    session_key_value,
    target_state_key,
    target_state_value,
    task_count_record_key,
    task_count_record_value,
    task_key,
)
from coordinator_sim.connect.stores.config_state import ClusterConfigState
from coordinator_sim.connect.stores.config_table import ConfigTable
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim_conformance.real_kafka.connect import connect_jars
from coordinator_sim_conformance.real_kafka.kafka import HERE

CONNECTORS: Final = ("a", "b", "a-1", "c-")
TASK_COUNT: Final = 4
RECORD_COUNT: Final = 60
"""Number of records of one run; the store is started before one of the first forty."""
_TIMEOUT_S: Final = 300

_ODD_KEYS: Final = (
    *("task-", "task-a", "task-a-x", "task--1-", "task-c--0", "task-a-+1", "task-a-00002"),
    *("commit-", "connector-", "tasks-fencing-", "target-state-", "what"),
)
_ODD_VALUES: Final = (
    *(None, b"", b" ", b"{", b"[]", b"7", b'"x"', b"null", b"true", b"{}", b"\xff\xfe", b"NaN"),
    *(b'{"properties":1}', b'{"properties":{}}', b'{"a":01}', b"[01,-02,1.05e05]", b"{'a':1}"),
    *(b'{"tasks":"1"}', b'{"tasks":1.0}', b'{"tasks":2,"x":[1]} trailing', b' {"tasks":0}'),
    *(b'{"tasks":99999999999}', b'{"tasks":1,"tasks":0}', b'{"tasks":01,"x":"007"}'),
    *(b'{"state":"PAUSED"}', b'{"state":"paused"}', b'{"state":1,"state.v2":"STOPPED"}'),
    *(b'{"state.v2":3,"state":"STARTED"}', b'{"level":3}', b'{"only-failed":"x"}'),
    *(b'{"key":"aGk=","algorithm":"HmacSHA1","creation-timestamp":5}', b'{"key":7}'),
    *(b'{"key":"aGk=","algorithm":"HmacSHA1","creation-timestamp":"5"}',),
    *(b'{"include-tasks":true}', b'{"task-count":null}'),
)

Record = tuple[str, bytes | None]


def random_run(random: Random) -> tuple[list[Record], int]:
    """Return the records of one run, and the index before which the store is started."""
    return [_record(random) for _ in range(RECORD_COUNT)], random.randrange(40)


def _record(random: Random) -> Record:
    name = random.choice(CONNECTORS)
    number = random.randrange(TASK_COUNT)
    kinds = (
        (30, task_key(ConnectorTaskId(name, number)), _properties(random)),
        (20, commit_tasks_key(name), commit_value(number)),
        (15, connector_key(name), random.choice((_properties(random),) * 3 + (None,))),
        (10, target_state_key(name), random.choice((*_targets(), None))),
        (5, task_count_record_key(name), task_count_record_value(number)),
        (4, restart_key(name), restart_value(_request(random, name))),
        (3, SESSION_KEY_KEY, session_key_value(SessionKey(random.randbytes(4), "x", number))),
        (3, logger_cluster_key("root"), logger_level_value("INFO")),
    )
    odd = (10, random.choice((*_ODD_KEYS, *(key for _, key, _ in kinds))), None)
    weights = [weight for weight, _, _ in (*kinds, odd)]
    _, key, value = random.choices((*kinds, odd), weights)[0]
    return (key, random.choice(_ODD_VALUES)) if key == odd[1] and value is None else (key, value)


def _properties(random: Random) -> bytes:
    names = random.sample("xyz", random.randrange(3))
    return properties_value({name: str(random.randrange(3)) for name in names})


def _targets() -> tuple[bytes, ...]:
    return tuple(target_state_value(state) for state in TargetState)


def _request(random: Random, name: str) -> RestartRequest:
    return RestartRequest(
        name,
        only_failed=random.choice((False, True)),
        include_tasks=random.choice((False, True)),
    )


# -- Connect's store -----------------------------------------------------------------------


def read_by_connect(runs: list[tuple[list[Record], int]]) -> list[dict[str, object]]:
    """Return the state of Connect's own store after each record, run after run.

    Raises:
        DataError: the store failed; the message holds its output.
    """
    lines: list[str] = []
    for records, start in runs:
        lines.append("new")
        for index, (key, value) in enumerate(records):
            lines += ["start"] if index == start else []
            encoded = None if value is None else b64encode(value).decode()
            lines.append(json.dumps({"k": key, "v": encoded}))
    command = [
        "java",
        "-Xmx256m",
        "-cp",
        f"{connect_jars()}{os.sep}*",
        str(HERE / "ConfigStore.java"),
    ]
    done = subprocess.run(  # noqa: S603 - our own command line
        command,
        input="\n".join((*lines, "")),
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
        encoding="utf-8",
    )
    if done.returncode:
        raise DataError(f"ConfigStore: {done.stderr.strip()[-1000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


# -- our store -----------------------------------------------------------------------------


class _Listener:
    """Records its calls in the form of ConfigStore.java."""

    def __init__(self) -> None:
        self.heard: list[list[str]] = []

    def on_connector_config_remove(self, connector: str) -> None:
        """Record that a connector was deleted."""
        self.heard.append(["removed", connector])

    def on_connector_config_update(self, connector: str) -> None:
        """Record that a connector was configured."""
        self.heard.append(["updated", connector])

    def on_task_config_update(self, tasks: tuple[ConnectorTaskId, ...]) -> None:
        """Record committed tasks."""
        self.heard.append(["tasks", *(f"{task.connector}/{task.task}" for task in tasks)])

    def on_connector_target_state_change(self, connector: str) -> None:
        """Record a changed target state."""
        self.heard.append(["target", connector])

    def on_session_key_update(self, key: SessionKey) -> None:
        """Record a new session key."""
        self.heard.append(["key", _key_text(key)])

    def on_restart_request(self, request: RestartRequest) -> None:
        """Record a restart request."""
        flags = (str(flag).lower() for flag in (request.only_failed, request.include_tasks))
        self.heard.append(["restart", request.connector, *flags])

    def on_logging_level_update(self, namespace: str, level: str) -> None:
        """Record a new log level."""
        self.heard.append(["level", namespace, level])


def read_by_us(runs: list[tuple[list[Record], int]]) -> list[dict[str, object]]:
    """Return the state of our store after each record, run after run."""
    return [state for records, start in runs for state in _states(records, start)]


def _states(records: list[Record], start: int) -> list[dict[str, object]]:
    table = ConfigTable()
    table.listener = listener = _Listener()
    states: list[dict[str, object]] = []
    for offset, (key, value) in enumerate(records):
        table.is_started |= offset == start
        error = ""
        try:
            table.read(TopicRecord(partition=0, offset=offset, key=key.encode(), value=value))
        except JavaException as exception:
            error = exception.name
        snapshot = table.snapshot()
        states.append(
            {
                "connectors": {name: _connector(snapshot, name) for name in CONNECTORS},
                "order": list(snapshot.connectors()),
                "offset": snapshot.offset,
                "error": error,
                "key": None if snapshot.session_key is None else _key_text(snapshot.session_key),
                "heard": listener.heard,
            }
        )
        listener.heard = []
    return states


def _connector(snapshot: ClusterConfigState, name: str) -> dict[str, object]:
    target = snapshot.target_state(name)
    tasks = (ConnectorTaskId(name, number) for number in range(TASK_COUNT))
    return {
        "config": snapshot.connector_config(name),
        "applied": snapshot.applied_connector_config(name),
        "target": None if target is None else target.value,
        "count": snapshot.task_count(name),
        "pending": snapshot.pending_fencing(name),
        "record": snapshot.task_count_record(name),
        "generation": snapshot.task_config_generation(name),
        "inconsistent": name in snapshot.inconsistent_connectors,
        "configs": [snapshot.task_config(task) for task in tasks],
    }


def _key_text(key: SessionKey) -> str:
    return f"{key.algorithm} {key.creation_timestamp_ms} {b64encode(key.key).decode()}"
