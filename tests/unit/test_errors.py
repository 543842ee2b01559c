"""What a user is told to type where a package of an extra is missing."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from coordinator_sim.errors import needing

ROOT = Path(__file__).resolve().parents[2]
SERVE = """
Requires-Dist: msgspec>=0.19
Requires-Dist: httpx>=0.27; extra == 'serve'
Requires-Dist: uvloop>=0.21; (sys_platform != 'win32') and extra == 'serve'
Requires-Dist: jinja2>=3.1; extra == "pages"
"""


def remedy(extra: str, folder: Path) -> str:
    """The remedy where the distributions of that folder are installed, and no others."""
    (folder / "msgspec").symlink_to(Path(msgspec.__file__).parent)  # imported, not installed
    code = (
        f"import sys; sys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}]\n"
        f"from coordinator_sim.errors import remedy; print(remedy({extra!r}))"
    )
    command = [sys.executable, "-I", "-S", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def distribution(folder: Path, name: str, requires: str = "") -> None:
    """Install the metadata of a distribution there."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0{requires}\n")


@pytest.mark.parametrize(
    ("installed", "words"),
    [
        ([], """'httpx>=0.27' 'uvloop>=0.21; (sys_platform != "win32")'"""),
        (["uvloop"], "'httpx>=0.27'"),
        (["uvloop", "httpx"], """'httpx>=0.27' 'uvloop>=0.21; (sys_platform != "win32")'"""),
    ],
)
def test_remedy_names_what_is_missing_or_all_where_something_is_too_old(
    installed: list[str], words: str, tmp_path: Path
) -> None:
    """The packages of that extra alone, with the versions that the metadata has."""
    distribution(tmp_path, "coordinator_sim", SERVE.rstrip())
    for name in installed:
        distribution(tmp_path, name)
    assert remedy("serve", tmp_path) == f"pip install {words}"


def test_remedy_in_a_clone_that_is_not_installed_installs_it(tmp_path: Path) -> None:
    """Nothing says what the extra has, but the folder does."""
    assert remedy("serve", tmp_path) == "pip install '.[serve]' in the folder with pyproject.toml"


def test_missing_module_of_our_own_is_no_missing_extra() -> None:
    """That is a bug of this project, and nothing to install helps."""
    with pytest.raises(ModuleNotFoundError, match="nowhere"), needing("serve", "a test"):
        import_module("coordinator_sim.nowhere")
