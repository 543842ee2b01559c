"""Bugs that Kafka Connect had, and what a port of it gets wrong, as faults of our port."""

from typing import Final

from coordinator_sim_conformance.museum.exhibit import Exhibit

_CLIENTS: Final = "coordinator_sim.clients."
_CONNECT: Final = "coordinator_sim.connect."
_INCREMENTAL: Final = "coordinator_sim.assignors.connect_incremental"

CONNECT_BUGS: Final = (
    Exhibit(
        "KAFKA-8463",
        "A leader without memory deals out what the other workers run.",
        _INCREMENTAL,
        "        created = everything.difference(self._previous_assignment, active)\n",
        "        created = everything.difference(self._previous_assignment)\n",
        "scenario connect-leader-stops",
    ),
    Exhibit(
        "KAFKA-9184",
        "A worker without a coordinator goes on running what it has.",
        _CLIENTS + "worker_coordinator",
        (
            "                self._revoked_while_unreachable,\n"
            "                connectors=snapshot.connectors,\n"
            "                tasks=snapshot.tasks,\n"
        ),
        "                self._revoked_while_unreachable,\n",
        "scenario connect-worker-cut-off",
    ),
    Exhibit(
        "KAFKA-9841",
        "What two workers run is left to both.",
        _INCREMENTAL,
        "        revoked[member_id].add(work.hashed_intersection(duplicated))\n",
        "",
        "scenario connect-outdated-worker",
    ),
    Exhibit(
        "KAFKA-9848",
        "An assignment that was not delivered is waited for as if its worker had left.",
        _INCREMENTAL,
        "        if nobody_left or self._max_delay_ms == 0:\n",
        "        if self._max_delay_ms == 0:\n",
        "scenario connect-lost-sync",
    ),
    Exhibit(
        "KAFKA-9849",
        "A worker that cannot read the config topic sleeps for five minutes with its work running.",
        _CONNECT + "herding.config_topic",
        (
            "    if herder.protocol_version == ConnectProtocolCompatibility.EAGER:\n"
            '        with herder.in_stage(f"sleeping'
        ),
        '    if True:\n        with herder.in_stage(f"sleeping',
        "C-HERD-04.2",
    ),
    Exhibit(
        "KAFKA-9851",
        "A worker that gave its work up by itself believes that it still runs it.",
        _CONNECT + "herding.rebalance_listener",
        "    herder.remove(herder.running_assignment, connectors, tasks)\n",
        "",
        "scenario connect-voluntary-revocation",
    ),
    Exhibit(
        "KAFKA-10413",
        "Every worker above the smallest share may keep one more.",
        _INCREMENTAL,
        "            extras -= 1\n",
        "",
        "scenario connect-several-joiners",
    ),
    Exhibit(
        "KAFKA-12495",
        "After a round that revoked, no other one revokes until somebody joins.",
        _INCREMENTAL,
        "            self._successive_revoking_count += 1\n",
        "            self._revoked_in_previous = False\n            return\n",
        "scenario connect-join-storm",
    ),
    Exhibit(
        "KAFKA-15693",
        "A scheduled delay of 0 asks for another rebalance all the same.",
        _INCREMENTAL,
        "        if nobody_left or self._max_delay_ms == 0:\n",
        "        if nobody_left:\n",
        "scenario connect-no-delay",
    ),
    Exhibit(
        "KAFKA-4553",
        "Eager connectors are dealt out to every second worker only.",
        "coordinator_sim.assignors.connect_eager",
        "            work[ids[index % len(ids)]].connectors.append(connector)\n",
        "            work[ids[2 * index % len(ids)]].connectors.append(connector)\n",
        "scenario connect-eager-round-robin",
    ),
)
"""In the order of the matter: leaders, zombies, undelivered assignments, balance, eager."""

CONNECT_FAULTS: Final = (
    Exhibit(
        "starts-past-the-assignment",
        "A worker that has read beyond its assignment starts the assignment's work.",
        _CONNECT + "herding.herder",
        "    if herder.config_state.offset != assignment.offset:\n",
        "    if False:\n",
        "C-HERD-02",
    ),
    Exhibit(
        "starts-before-it-has-read",
        "A worker behind its assignment starts work without reading the config topic.",
        _CONNECT + "herding.herder",
        "    if needs_read_to_end:\n",
        "    if False:\n",
        "C-HERD-03",
    ),
    Exhibit(
        "forgets-the-scheduled-rebalance",
        "Nobody rejoins when the scheduled delay is over.",
        _CONNECT + "herding.herder",
        "        needs_rejoin = True\n        herder.scheduled_rebalance_ms = FOREVER\n",
        "        herder.scheduled_rebalance_ms = FOREVER\n",
        "C-HERD-06",
    ),
    Exhibit(
        "updates-rebalance",
        "A new configuration of a known connector makes every worker rejoin.",
        _CONNECT + "herding.config_updates",
        "            herder.connector_config_updates[connector] = None\n        else:\n"
        "            herder.needs_reconfig_rebalance = True\n        herder.member.wakeup()\n",
        "            herder.needs_reconfig_rebalance = True\n        else:\n"
        "            herder.needs_reconfig_rebalance = True\n        herder.member.wakeup()\n",
        "C-HERD-08",
    ),
    Exhibit(
        "followers-write-keys",
        "Every worker writes a session key, and not the leader alone.",
        _CONNECT + "herding.key_rotation",
        "    if not is_request_validation_enabled(herder) or not herder.is_leader:\n",
        "    if not is_request_validation_enabled(herder):\n",
        "C-HERD-15",
    ),
    Exhibit(
        "tasks-without-a-commit",
        "A task's new configuration counts as soon as it is read.",
        _CONNECT + "stores.config_table",
        "            self._deferred.setdefault(task.connector, {})[task] = properties\n",
        "            self._deferred.setdefault(task.connector, {})[task] = properties\n"
        "            self._task_configs[task] = properties\n",
        "C-CFG-01",
    ),
    Exhibit(
        "takes-a-hole-for-whole",
        "A commit of tasks that compaction took is believed.",
        _CONNECT + "stores.config_table",
        "        if not _is_complete(deferred or {}, connector, count):\n",
        "        if False:\n",
        "C-CFG-02",
    ),
    Exhibit(
        "stopped-for-new-workers-alone",
        "STOPPED is written so that workers before 3.5 cannot read it.",
        _CONNECT + "stores.config_records",
        "    old = TargetState.PAUSED if state is TargetState.STOPPED else state\n",
        "    old = state\n",
        "C-CFG-03",
    ),
)
"""What no bug of Kafka was: catching up, delays, updates, keys, the config topic."""
