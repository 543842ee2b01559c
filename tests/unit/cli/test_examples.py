"""`examples`: the files of the guides, for whoever has the package alone."""

import subprocess
from pathlib import Path

from tests.command_line import run_here

ROOT = Path(__file__).resolve().parents[3]


def test_the_files_are_those_of_the_repository(tmp_path: Path) -> None:
    """All of them, byte for byte; a second call changes nothing."""
    for _ in range(2):
        done = run_here("examples", folder=tmp_path)
        assert done.returncode == 0, done.stderr
    kept = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "examples"]
    names = subprocess.run(kept, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [Path(name) for name in names.split("\0") if name]
    ours = {path: (ROOT / path).read_bytes() for path in paths if path.name != "py.typed"}
    written = {
        path.relative_to(tmp_path): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert written == ours
    assert done.stdout == f"{len(ours)} files in examples\n"


def test_a_file_of_the_users_is_never_overwritten(tmp_path: Path) -> None:
    """Not one file is written then, and the line names the file and the way out."""
    mine = tmp_path / "examples" / "own_assignor" / "mine.py"
    mine.parent.mkdir(parents=True)
    mine.write_text("work of an evening\n")
    done = run_here("examples", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "error: examples/own_assignor/mine.py is there and differs from the example of that name; "
        "name another folder with --out\n"
    )
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]
    assert mine.read_text() == "work of an evening\n"
