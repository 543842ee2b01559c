"""The guide's properties run from a wheel, and the examples pass."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guides" / "testing-with-pytest.md"
FILE = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)
ON_CI = {"CI", "BUILD_NUMBER"}


def pytest_in(folder: Path, *options: str, library: Path = ROOT) -> str:
    """What pytest prints there with the plugin alone, of the library in that folder.

    At a terminal, that is: where CI or BUILD_NUMBER is set it does not shorten its summary.

    Args:
        folder: Where pytest runs.
        options: Of pytest's.
        library: Folder of the library.
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
            "PYTHONPATH": str(library),
        },
    )
    return done.stdout + done.stderr


@pytest.mark.nightly
def test_properties_from_an_installed_wheel_in_an_empty_folder(tmp_path: Path) -> None:
    """The guide's property passes, and the command that a failure prints repeats its story.

    The wheel is built by pip, which downloads what builds it.
    """
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, str(ROOT)], check=True)
    folder = tmp_path / "empty"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, source in FILE.findall(GUIDE.read_text(encoding="utf-8")):
        if name in {"test_my_settings.py", "test_too_much.py"}:
            where = "import coordinator_sim\nprint(coordinator_sim.__file__)\n"
            (folder / name).write_text(f"{where}{source}")
    passed = pytest_in(folder, "-q", "-s", "test_my_settings.py", library=site)
    assert str(site) in passed
    assert "1 passed" in passed, passed
    failed = pytest_in(folder, "-q", "test_too_much.py", library=site)
    command = re.findall(r"Run it again: coordinator-sim ([^\n]*)", failed)[-1]
    again = subprocess.run(
        [sys.executable, "-m", "coordinator_sim", *command.split()],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    crash = next(line for line in again.stdout.splitlines() if "CrashMember" in line)
    assert crash in failed


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
