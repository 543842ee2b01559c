"""Baselines that come with the suite, and result files that gzip has compressed."""

import gzip
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.cli.main import app
from coordinator_sim_conformance.endpoints.named import NAMED
from coordinator_sim_conformance.registry import any_cases
from coordinator_sim_conformance.targets.choice import known_gaps_of
from coordinator_sim_conformance.verdicts.baseline import read_baseline
from coordinator_sim_conformance.verdicts.results import read_result


@pytest.mark.parametrize(("name", "letter"), [("kfake", "K"), ("librdkafka-mock", "L")])
def test_every_known_gap_is_a_numbered_deviation_of_a_case(name: str, letter: str) -> None:
    """One number has one text, and the profile is that which the target is played as."""
    path = known_gaps_of(name)
    assert path is not None
    gaps = read_baseline(path, any_cases())
    texts: dict[str, str] = {}

    assert len(gaps) > 40
    for key, reason in gaps.items():
        number, _, text = reason.partition(": ")
        assert re.fullmatch(rf"{letter}\d+", number)
        assert texts.setdefault(number, text) == text
        assert key.endswith(f"@{NAMED[name].profile}")


def test_targets_that_follow_kafka_have_no_known_gaps() -> None:
    """Neither Kafka itself nor our own server."""
    assert [name for name in NAMED if known_gaps_of(name)] == ["kfake", "librdkafka-mock"]


def test_a_result_may_be_compressed(tmp_path: Path) -> None:
    """The same run, and the same bytes each time but for the instants."""
    for name in ("plain.json", "packed.json.gz"):
        words = ["run", "--case", "HB-002", "--result", str(tmp_path / name)]
        assert CliRunner().invoke(app, words).exit_code == 0

    plain, packed = (read_result(tmp_path / name) for name in ("plain.json", "packed.json.gz"))
    assert [each.case_id for each in packed.endings] == [each.case_id for each in plain.endings]
    assert gzip.decompress((tmp_path / "packed.json.gz").read_bytes())[:1] == b"{"


def test_a_file_that_is_not_gzips_is_refused_in_one_line(tmp_path: Path) -> None:
    """Named, with what was wanted."""
    path = tmp_path / "broken.json.gz"
    path.write_bytes(b"\x1f\x8bnothing")

    with pytest.raises(DataError, match=r"broken\.json\.gz: .*; wanted is what gzip made"):
        read_result(path)
