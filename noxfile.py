"""The project's sessions. `./dev NAME` runs one of them in the project's own environment."""

from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["test"]

ROOT = Path(__file__).parent


@nox.session
def demo(session: nox.Session) -> None:
    """The main job: simulate rolling deploys, compare assignors, write a report to out/."""
    session.run("coordinator-sim", "demo", *session.posargs)


@nox.session
def test(session: nox.Session) -> None:
    """The default test suite; needs nothing but Python, and Java for the Spark part."""
    session.run("pytest", "-m", "not property and not oracle", *session.posargs)


@nox.session(name="property")
def property_(session: nox.Session) -> None:
    """Property tests; `-- --hypothesis-profile nightly` for the long run."""
    session.run("pytest", "-m", "property", *(session.posargs or ["--hypothesis-profile", "ci"]))


@nox.session
def oracle(session: nox.Session) -> None:
    """Comparison with Apache Kafka's own coordinator (builds the oracle with Maven)."""
    session.run("pytest", "-m", "oracle", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Formatting, ruff, import directions."""
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports", "--no-cache")


@nox.session
def types(session: nox.Session) -> None:
    """Strict type checking."""
    session.run("mypy")


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmarks, as ratios measured in one run."""
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def build(session: nox.Session) -> None:
    """Build sdist and wheel into dist/."""
    session.run("python", "-m", "build", "--outdir", str(ROOT / "dist"))
