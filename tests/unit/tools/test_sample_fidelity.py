"""Samples of others' making: each is recognised and replays in full, or is refused in one line."""

from pathlib import Path

import pytest

from tools.sample_fidelity import PAGE, Sample, page_of, sample_paths, tried

SAMPLES = Path(__file__).resolve().parents[4] / "shared" / "samples"
INGESTED = ("broker-logs", "offsets-segments")
"""Folders of what `ingest` is for; the others hold recordings for other tools."""


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """What came of every sample."""
    if not SAMPLES.is_dir():
        pytest.skip("no folder shared/samples beside the project")
    return [tried(path, SAMPLES) for path in sample_paths(SAMPLES)]


def test_every_sample_is_recognised_or_refused_in_one_clear_line(samples: list[Sample]) -> None:
    """Logs and segments are ingested; what has nothing of a group is refused with the reason."""
    for sample in samples:
        folder = sample.name.partition("/")[0]
        assert sample.is_recognised == (folder in INGESTED), sample
        if not sample.is_recognised:
            assert len(sample.damage) == 1, sample
        assert all(text and "\n" not in text for text in sample.damage), sample


def test_replay_reproduces_all_that_a_sample_determines(samples: list[Sample]) -> None:
    """Plain replay of each by itself; of the others it is said why there is nothing to replay."""
    missed = [sample.name for sample in samples if not sample.is_reproduced]
    assert missed == []
    assert sum(sample.report is not None for sample in samples) > 20
    for sample in samples:
        if sample.is_recognised and sample.report is None:
            assert sample.damage[-1].endswith("so there is nothing to replay"), sample


def test_page_of_samples_is_up_to_date(samples: list[Sample]) -> None:
    """The table in the documentation is what the samples give today."""
    assert PAGE.read_text(encoding="utf-8") == page_of(samples)
