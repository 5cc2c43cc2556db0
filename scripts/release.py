"""What ``make release`` asks of the repository before it builds, and what it leaves for a person to do.

python scripts/release.py check [TAG]     fails unless this commit can be released; TAG is one that it was given
python scripts/release.py left            what is to be done once dist/ is built and tested
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION, REPOSITORY = PROJECT["version"], PROJECT["urls"]["Repository"]
TAG = f"v{VERSION}"


def problems(tag: str) -> list[str]:
    """What stands against a release of this commit under that tag, a sentence each."""
    head, found = _git("rev-parse", "HEAD"), []
    if not head:
        return ["A release is made of a commit, and this folder is no checkout of the repository."]
    if changed := _git("status", "--porcelain"):
        found.append(
            f"What is not committed would be published with it: {', '.join(changed.split(chr(10)))}. Commit it."
        )
    if tag != TAG:
        found.append(f"The tag is {tag}, but the version in pyproject.toml is {VERSION}: the tag has to be {TAG}.")
    newest = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if newest is None or not newest[1].startswith(f"[{VERSION}] - "):
        title = "no section" if newest is None else newest[1]
        found.append(f"CHANGELOG.md begins with {title}: its first section has to be [{VERSION}] - and the day.")
    tagged = _git("rev-parse", "--verify", "--quiet", f"refs/tags/{TAG}^{{commit}}")
    if tagged and tagged != head:
        found.append(f"{TAG} is the tag of another commit, {tagged[:8]}. A version is released once: raise it.")
    origin = _origin()
    if origin and origin != REPOSITORY:
        found.append(
            f"The repository is at {origin}, but pyproject.toml, README.md and CITATION.cff say {REPOSITORY}. "
            "Right the address in all files that name it."
        )
    return found


def left() -> list[str]:
    """What a person has to do, in order."""
    steps = [] if _origin() else [f"git remote add origin {REPOSITORY}, if that is its address: the README links there"]
    steps += [
        "make test-all, if it was not run on this commit",
        "once: let the package index trust .github/workflows/release.yml, in the environment 'release', for the name "
        f"{PROJECT['name']!r}, and see that nobody else has that name",
        f"git tag -a {TAG} -m 'headstart {VERSION}'",
        f"git push origin main {TAG}: the workflow tests, builds and checks it again, and uploads it",
    ]
    return steps


def _origin() -> str:
    """The address of the remote repository as a browser opens it; "" without one."""
    url = _git("config", "--get", "remote.origin.url")
    return re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", url).removesuffix("/").removesuffix(".git")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def main() -> None:
    """Parse, call, print."""
    match sys.argv[1:]:
        case ["check", *tags] if len(tags) < 2:
            if found := problems(*tags or [TAG]):
                sys.exit("\n".join(found))
        case ["left"]:
            sizes = [f"{file.name} ({file.stat().st_size / 1e3:.0f} kB)" for file in sorted((ROOT / "dist").iterdir())]
            print(f"\nheadstart {VERSION} is built and checked, in dist/: {', '.join(sizes)}. What is left:")
            print("\n".join(f"  {i}. {step}" for i, step in enumerate(left(), 1)))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
