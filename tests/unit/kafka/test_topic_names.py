"""Which names a topic may have, at every door through which a topic comes."""

import json
from pathlib import Path

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import TopicCreated
from coordinator_sim.broker.metadata.image import topic_id_for
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.cli.serve import _parse_topics
from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.kafka.topic_names import check_topic_name, complaint
from coordinator_sim.server.disk import open_kept
from coordinator_sim.sim.scenario.files import scenario_from_json

NOW = Instants(1_700_000_000_000, 1_700_000_000_000)
BAD = ["", ".", "..", "evil\n", "\n", "a b", "a/b", "a\0", "\u00e9", "\u0661", "x" * 250]
GOOD = ["a", "...", "A.b_c-9", "x" * 249]


@pytest.mark.parametrize("name", GOOD)
def test_legal_name_is_taken(name: str) -> None:
    """Letters, digits, dots, underscores and hyphens, up to 249 of them."""
    assert complaint(name) is None
    check_topic_name(name)


@pytest.mark.parametrize("name", BAD)
def test_illegal_name_is_refused_in_one_line(name: str) -> None:
    """Also with a newline at its end, which `$` of a regular expression lets through."""
    assert complaint(name) is not None
    with pytest.raises(ConfigError, match="Topic name is invalid") as refused:
        check_topic_name(name)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("name", BAD)
def test_no_door_lets_an_illegal_name_in(name: str) -> None:
    """Not the cluster, on which every API, HTTP, `ctl` and the pytest plugin rest."""
    cluster = Cluster(ClusterSettings(), endpoint=lambda _broker, _name: None)
    cluster.begin(NOW)
    for create in (
        lambda: cluster.topics.create(name, ((1,),), NOW),
        lambda: cluster.topics.create_spread(name, 1, NOW),
        lambda: cluster.topics.create_asked_for(name, NOW),
    ):
        with pytest.raises(ConfigError, match="Topic name is invalid"):
            create()
    assert not cluster.image.topics


@pytest.mark.parametrize("name", BAD)
def test_command_line_takes_no_illegal_name(name: str) -> None:
    """Nor a count of thousands of digits."""
    with pytest.raises(ConfigError, match="--topics"):
        _parse_topics(f"{name}:1")


@pytest.mark.parametrize("count", ["9" * 5_000, "0" * 5_000, "-1", "\u0661", "1\n"])
def test_command_line_takes_no_wild_count(count: str) -> None:
    """What is no number of partitions is refused with the way to write one."""
    with pytest.raises(ConfigError, match="--topics"):
        _parse_topics(f"a:{count}")


@pytest.mark.parametrize("name", BAD)
def test_scenario_takes_no_illegal_name(name: str) -> None:
    """Neither in its world nor in what happens to it."""
    world = {"topics": [{"name": name, "partitions": 1}]}
    happening = {
        "happenings": [{"kind": "CreateTopic", "at_ms": 1, "topic": name, "partitions": 1}]
    }
    for part in (world, happening):
        text = json.dumps({"name": "s", "title": "s", "story": "s", "duration_ms": 10, **part})
        with pytest.raises(ScenarioError, match=r"Topic name is invalid|topic has an empty name"):
            scenario_from_json(text)


def test_journal_with_an_illegal_name_is_refused(tmp_path: Path) -> None:
    """A journal that an earlier version let such a topic into is told of by the topic's name."""
    kept = open_kept(tmp_path, node_ids=(1,), cluster_id="4L6g3nShT-eMCtK--X86sw")
    kept.journal(TopicCreated("evil\n", topic_id_for("evil\n"), ((1,),)))
    kept.close()
    with pytest.raises(ConfigError, match=r"'evil\\n'"):
        open_kept(tmp_path, node_ids=(1,), cluster_id="4L6g3nShT-eMCtK--X86sw")


@pytest.mark.parametrize(
    ("text", "bits", "number"),
    [
        ("0", 32, 0),
        ("-2147483648", 32, -(1 << 31)),
        ("2147483648", 32, None),
        ("9223372036854775807", 64, (1 << 63) - 1),
        ("9" * 5_000, 64, None),
        ("0" * 5_000 + "7", 32, 7),
        ("+7", 32, 7),
        *((text, 32, None) for text in ("", "-", "7\n", " 7", "1_0", "\u0661", "0x1")),
    ],
)
def test_whole_number_is_read_as_java_reads_it(text: str, bits: int, number: int | None) -> None:
    """The number may have any length, in ASCII digits alone, and nothing behind them."""
    assert java_int(text, bits) == number
