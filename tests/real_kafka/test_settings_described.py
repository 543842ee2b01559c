"""DescribeConfigs at real brokers and ours: the same settings, in the same order."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.field_frames import Fields
from coordinator_sim_conformance.real_kafka.kafka import Broker
from coordinator_sim_conformance.requirements import RELEASES
from tests.real_kafka.admin_requests import (
    BROKER,
    GROUP,
    METRICS,
    SET,
    TOPIC,
    Asked,
    alter,
    create,
    new,
)
from tests.real_kafka.test_admin_differential import SETTLE_S, RealClient
from tests.unit.broker.frames_client import DataClient

pytestmark = pytest.mark.real_kafka

GIVEN: Final = {
    "log.retention.hours": "100",
    "unstable.feature.versions.enable": "false",
    "group.max.session.timeout.ms": "1700000",
    "ssl.key.password": "secret",
}
"""An internal setting, which is shown because it is set, and a secret are among them."""
GROUPS_SINCE: Final = "4.0"


def story(*, groups: bool) -> list[Asked]:
    """Topics with and without settings of their own, a broker, and the cluster; groups if asked."""
    asked = [
        create(new("t", cleanup_policy="compact", retention_ms="5000"), new("u")),
        alter(BROKER, "", ("log.segment.bytes", SET, "2000000")),
        alter(BROKER, "1", ("log.cleaner.threads", SET, "2")),
        alter(METRICS, "m", ("interval.ms", SET, "60000")),
    ]
    if groups:
        asked.append(alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")))
    resources = [(BROKER, "1"), (BROKER, ""), (TOPIC, "t"), (TOPIC, "u")]
    resources += [(METRICS, "m"), (METRICS, "n")]
    resources += [(GROUP, "g"), (GROUP, "h")] if groups else []
    return asked + [
        (
            ApiKey.DESCRIBE_CONFIGS,
            4,
            {
                "resources": [{"resourceType": kind, "resourceName": name}],
                "includeSynonyms": True,
                "includeDocumentation": True,
            },
        )
        for kind, name in resources
    ]


def descriptions(ask: Callable[[Asked], Any], *, groups: bool, pause_s: float = 0) -> list[Fields]:
    """The settings of each resource."""
    found: list[Fields] = []
    for each in story(groups=groups):
        answer = ask(each)
        time.sleep(pause_s)
        if each[0] is ApiKey.DESCRIBE_CONFIGS:
            found += [result["configs"] for result in answer["results"]]
    return found


@pytest.mark.parametrize(
    "profile",
    [
        "3.9",
        "4.4",
        *(pytest.param(each, marks=pytest.mark.nightly) for each in ("4.0", "4.1", "4.2", "4.3")),
    ],
)
def test_every_setting_is_described_alike(tmp_path: Path, profile: str) -> None:
    """Order, values, sources, synonyms, types and documentation."""
    groups = profile >= GROUPS_SINCE
    with Broker(tmp_path / "kafka", dict(GIVEN), RELEASES[profile]) as broker:
        theirs = RealClient(broker.bootstrap)
        real = descriptions(theirs.ask, groups=groups, pause_s=4 * SETTLE_S)
        theirs.close()
    lines = (tmp_path / "kafka" / "server.properties").read_text("utf-8").splitlines()
    given = dict(line.split("=", 1) for line in lines)
    if not groups:
        given = {name: each for name, each in given.items() if not name.startswith("share.")}
        real[0] = [each for each in real[0] if not each["name"].startswith("share.")]
    settings = ClusterSettings(profile=profile_named(profile), given=given)
    ours = Cluster(settings, endpoint=lambda _id, _name: Endpoint("localhost", 9092))

    found = descriptions(lambda asked: DataClient(ours).call(*asked), groups=groups)

    assert [[each["name"] for each in configs] for configs in found] == [
        [each["name"] for each in configs] for configs in real
    ]
    assert found == real
