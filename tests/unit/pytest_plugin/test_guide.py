"""The guide to the plugin shows what its tests print, and the examples pass."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guides" / "testing-with-pytest.md"
FILE = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)
RUN = re.compile(r"```\n\$ pytest ([^\n]*)\n(.*?)```", re.DOTALL)
ON_CI = {"CI", "BUILD_NUMBER"}
SECONDS = re.compile(r" in [0-9.]+s")


def pytest_in(folder: Path, *options: str) -> str:
    """What pytest prints there with the plugin alone.

    At a terminal, that is: where CI or BUILD_NUMBER is set it does not shorten its summary.
    """
    here = {name: text for name, text in os.environ.items() if name not in ON_CI}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "coordinator_sim_pytest", *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={
            **here,
            "COLUMNS": "80",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(ROOT),
        },
    )
    return done.stdout + done.stderr


def test_the_guide_shows_what_its_tests_print(tmp_path: Path) -> None:
    """Seconds and folders apart."""
    for package in ("aiokafka", "confluent_kafka", "uvicorn"):
        pytest.importorskip(package)
    text = GUIDE.read_text(encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name, source in FILE.findall(text):
        (tmp_path / name).write_text(f"# {name}\n{source}")
    runs = RUN.findall(text)
    assert len(runs) == 3
    for options, shown in runs:
        printed = pytest_in(tmp_path, *options.split())
        printed = SECONDS.sub(" in 0.00s", printed).replace(f"{tmp_path}/", "")
        assert printed == shown


@pytest.mark.parametrize(
    ("example", "client"),
    [
        ("pytest_aiokafka", "aiokafka"),
        ("pytest_confluent_kafka", "confluent_kafka"),
        ("pytest_kafka_python", "kafka"),
    ],
)
def test_an_example_passes(example: str, client: str, tmp_path: Path) -> None:
    """The example runs as a user would copy it."""
    pytest.importorskip(client)
    pytest.importorskip("uvicorn")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    printed = pytest_in(tmp_path, "-q", "-c", "pytest.ini", str(ROOT / "examples" / example))
    assert re.search(r"^\d+ passed", printed, re.MULTILINE), printed
    assert "failed" not in printed
