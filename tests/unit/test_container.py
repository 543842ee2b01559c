"""The Dockerfile and the example for Testcontainers, as far as one can tell without Docker."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"
pytestmark = pytest.mark.skipif(not DOCKERFILE.is_file(), reason="not part of this install")


def text() -> str:
    """The Dockerfile."""
    return DOCKERFILE.read_text(encoding="utf-8")


def test_image_serves_with_options_that_there_are() -> None:
    """Every option of the entry point is one of `serve`."""
    command = " ".join(json.loads(text().split("ENTRYPOINT ")[1].splitlines()[0]))
    shown = subprocess.run(
        [sys.executable, "-m", "coordinator_sim", "serve", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    options = re.findall(r"--[a-z-]+", command)
    assert options
    assert [each for each in options if each not in shown] == []


def test_image_is_built_from_what_there_is() -> None:
    """What is copied exists and is not ignored, and nothing runs as root."""
    copied = [
        name
        for line in re.findall(r"^COPY (?!--from)(.*)$", text(), re.MULTILINE)
        for name in line.split()[:-1]
    ]
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert [each for each in copied if not (ROOT / each).exists()] == []
    assert [each for each in copied if f"!{each}" not in allowed] == []
    assert re.search(r"^USER (?!root)\w+$", text(), re.MULTILINE)


def test_health_of_the_image_is_asked_where_serve_tells_it() -> None:
    """The path and the port of the health check are those of the control surface."""
    assert "9099/readyz" in text().split("HEALTHCHECK")[1].split("\n\n")[0]
    assert "--control-port 9099" in text()


@pytest.mark.parametrize(("token", "host"), [("", "127.0.0.1"), ("a b", "0.0.0.0")])  # noqa: S104 - in the container
def test_control_surface_leaves_the_container_with_a_token_alone(
    token: str, host: str, tmp_path: Path
) -> None:
    """Without one it is reached from within, as by the health check; none is in the image."""
    program = tmp_path / "coordinator-sim"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    command = json.loads(text().split("ENTRYPOINT ")[1].splitlines()[0])
    given = {"COORDINATOR_SIM_CONTROL_TOKEN": token} if token else {}
    words = subprocess.run(
        [*command, "--topics", "orders:6"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "ADVERTISED": "PLAINTEXT://h:1", **given},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert words[words.index("--control-host") + 1] == host
    assert words[-2:] == ["--topics", "orders:6"]
    assert "TOKEN=" not in text().split("FROM", 1)[1]


def test_example_for_testcontainers_is_sound() -> None:
    """The example parses, has the ports that the image has, and draws its token."""
    source = (ROOT / "examples" / "testcontainers" / "serve_container.py").read_text("utf-8")
    values = {
        target.id: node.value.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert (values["CONTROL_PORT"], values["KAFKA_PORT"]) == (9099, 9092)
    assert "token = secrets.token_urlsafe()" in source
