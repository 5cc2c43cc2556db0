"""The direction of the arrow: who imports whom, and what importing the package costs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import headstart

ROOT = Path(headstart.__file__).parent
ORDER = (
    *("errors", "tuning", "notebook", "data", "gp", "models", "decide"),
    *("sources", "sampler", "platforms", "campaign", "draw", "web", "demo", "cli"),
)
# What a product never loads: each stands alone, and the demonstration uses the sampler.
APART = {
    "sampler": ("campaign", "draw", "demo"),
    "campaign": ("sampler", "draw", "demo", "web"),
    "draw": ("sampler", "demo", "web"),
    "web": ("sampler", "demo", "cli"),
}
MOST_LINES = 500
CORE = ("data", "gp", "models", "decide")
MODULES = sorted(ROOT.rglob("*.py"))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _folder(module: str) -> str:
    return [*module.split("."), ""][1]


def _imported(node: ast.AST, path: Path) -> list[str]:
    """The modules that an import statement names; of ``from a import b`` both a and a.b, for b may be a module."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            package = _name(path).split(".")
            if path.name != "__init__.py":
                package.pop()
            base = package[: len(package) - level + 1] if level else []
            origin = ".".join([*base, *([module] if module else [])])
            return [origin, *(f"{origin}.{alias.name}" for alias in names)]
    return []


def _at_import_time(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs when the module is imported: not the bodies of functions, nor what only a checker sees."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _at_import_time(child)


def test_no_module_imports_a_folder_above_its_own() -> None:
    """A folder imports only itself and the folders below it, wherever in the file the import stands."""
    upward = []
    for path in MODULES:
        own = _folder(_name(path))
        if own == "":
            continue  # the package itself offers names of every folder, on first use
        assert own in ORDER, f"{own} has no place in the order of folders"
        above = ORDER[ORDER.index(own) + 1 :]
        imported = {name for node in ast.walk(_tree(path)) for name in _imported(node, path)}
        upward += [(_name(path), n) for n in sorted(imported) if n.startswith("headstart.") and _folder(n) in above]
    assert upward == []


def test_the_package_does_not_know_its_benchmarks() -> None:
    """``benchmarks`` imports the package, never the reverse."""
    imported = {name for path in MODULES for node in ast.walk(_tree(path)) for name in _imported(node, path)}
    assert not [name for name in imported if name.split(".")[0] == "benchmarks"]


def _cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node: all that reach each other, in order."""

    def reached(node: str) -> set[str]:
        found: set[str] = set()
        waiting = [node]
        while waiting:
            new = graph.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return found

    reach = {node: reached(node) for node in graph}
    components = {frozenset(b for b in reach[a] if a in reach.get(b, ())) for a in graph}
    return sorted(sorted(component) for component in components if len(component) > 1)


def _between_children() -> dict[str, dict[tuple[str, str], list[str]]]:
    """For every folder: which of its children (modules and folders) imports which other one, and in which modules."""
    names = {_name(path) for path in MODULES}
    found: dict[str, dict[tuple[str, str], list[str]]] = {}
    for path in MODULES:
        own = _name(path).split(".")
        imported = {name for node in ast.walk(_tree(path)) for name in _imported(node, path)} & names
        for other in sorted(imported):
            there = other.split(".")
            depth = next((i for i, (a, b) in enumerate(zip(own, there, strict=False)) if a != b), None)
            if depth is not None:  # else one of them is a package that holds the other
                edges = found.setdefault(".".join(own[:depth]), {})
                edges.setdefault((own[depth], there[depth]), []).append(f"{'.'.join(own)} imports {other}")
    return found


def test_a_cycle_is_found_whatever_its_length() -> None:
    """Nodes that reach each other are one cycle; those that only lead to it or follow it are none."""
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "x": {"a"}, "p": {"q"}, "q": {"p"}}
    assert _cycles(graph) == [["a", "b", "c"], ["p", "q"]]
    assert _cycles({"a": {"b", "c"}, "b": {"c"}}) == []


def test_no_folder_has_a_cycle_among_its_children() -> None:
    """The modules and folders of a folder can be put in an order in which each imports only those before it."""
    found = []
    for folder, edges in _between_children().items():
        graph: dict[str, set[str]] = {}
        for a, b in edges:
            graph.setdefault(a, set()).add(b)
        for cycle in _cycles(graph):
            inside = [line for (a, b), lines in edges.items() if {a, b} <= set(cycle) for line in lines]
            found.append("\n    ".join([f"{folder}: {', '.join(cycle)}", *inside]))
    assert not found, "\n".join(found)


def test_the_core_loads_neither_optuna_nor_pandas() -> None:
    """No module of the core imports Optuna or pandas when it is itself imported."""
    loading = []
    for path in MODULES:
        if _folder(_name(path)) in (*CORE, "errors"):
            roots = {n.split(".")[0] for node in _at_import_time(_tree(path)) for n in _imported(node, path)}
            loading += [(_name(path), root) for root in roots & {"optuna", "pandas"}]
    assert loading == []


def test_importing_a_module_prints_nothing() -> None:
    """No module calls print when it is imported, and the core never does."""
    printing = []
    for path in MODULES:
        tree = _tree(path)
        nodes = ast.walk(tree) if _folder(_name(path)) in (*CORE, "errors") else _at_import_time(tree)
        calls = (node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "print")
        printing += [f"{_name(path)}:{call.lineno}" for call in calls]
    assert printing == []


HEAVY = ("torch", "numpy", "scipy", "botorch", "gpytorch", "optuna", "pandas", "matplotlib")
LOADING = f"""
import json, os, sys

sys.path.insert(0, {str(ROOT.parent)!r})

def say(name):
    print(name, json.dumps(sorted(sys.modules)), flush=True)

import headstart
say("package")
headstart.Dataset
say("one name")
from headstart import FAMILY
say("core")
for product, modules in json.loads(sys.argv[1]).items():
    child = os.fork()
    if not child:
        exec("import " + ", ".join(modules))
        say(product)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, product
"""


def _modules_of(product: str) -> list[str]:
    return [_name(p) for p in MODULES if _name(p).startswith(f"headstart.{product}.")]


@cache
def _loaded() -> dict[str, set[str]]:
    """What a fresh process has loaded after each step, and each of its forks after every module of one product."""
    command = [sys.executable, "-c", LOADING, json.dumps({product: _modules_of(product) for product in APART})]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {line[: line.index(" [")]: set(json.loads(line[line.index(" [") :])) for line in lines}


def test_importing_the_package_loads_nothing_heavy() -> None:
    """``import headstart`` loads neither torch nor NumPy, SciPy, BoTorch or Optuna."""
    assert "headstart" in _loaded()["package"]
    assert not _loaded()["package"] & set(HEAVY)


def test_the_first_use_of_a_name_loads_its_module() -> None:
    """A public name brings torch with it as soon as it is used."""
    assert "torch" in _loaded()["one name"]


def test_importing_the_whole_core_loads_neither_optuna_nor_pandas_nor_numba() -> None:
    """Not even the dependencies of the core bring them along; numba is loaded with the first problem that is set up."""
    assert "headstart.models.family" in _loaded()["core"]
    assert not _loaded()["core"] & {"optuna", "pandas", "numba"}


def test_every_public_name_resolves_and_is_listed() -> None:
    """``__all__`` has no doubles, every name in it exists, and ``dir`` shows it."""
    assert len(set(headstart.__all__)) == len(headstart.__all__)
    for name in headstart.__all__:
        assert getattr(headstart, name) is not None
        assert name in dir(headstart)


def test_all_is_complete() -> None:
    """Every name that a type checker sees in the package is in ``__all__``, and no other."""
    tree = ast.parse(Path(headstart.__file__).read_text())
    checked = [n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    imports = [node for block in checked for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname or alias.name for node in imports for alias in node.names}
    assert seen == set(headstart.__all__)


def test_a_public_name_is_its_modules_own() -> None:
    """The package hands out the very objects of its modules, under the module that the type checker reads."""
    tree = ast.parse(Path(headstart.__file__).read_text())
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("headstart")]
    for node in imports:
        module = __import__(str(node.module), fromlist=["*"])
        for alias in node.names:
            assert getattr(module, alias.name) is getattr(headstart, alias.name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """Asking for a name that does not exist fails as it does for any module, and names it."""
    with pytest.raises(AttributeError, match="no attribute 'SHGPP'"):
        _ = headstart.SHGPP


def test_only_the_package_lists_its_public_names() -> None:
    """``__all__`` stands in the package root alone: elsewhere a name without an underscore is public."""
    assert [_name(path) for path in MODULES if path.parent != ROOT and "__all__" in path.read_text()] == []


def test_no_module_imports_a_private_name_of_another() -> None:
    """What a module takes from another one of the package has no underscore in front."""
    private = [
        f"{_name(path)}:{node.lineno} {alias.name}"
        for path in MODULES
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headstart")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    assert private == []


@pytest.mark.filterwarnings("default")  # Ax, where it is installed, gives some of its own
def test_no_type_has_the_name_of_another() -> None:
    """A public class is the only one of its name."""
    found: dict[str, dict[str, Any]] = {}
    for path in MODULES:
        try:
            body, module = ast.parse(path.read_text()).body, __import__(_name(path), fromlist=["*"])
        except headstart.MissingExtraError:  # a type of a package that is not installed
            continue
        classes = [node.name for node in body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
        for name in classes:
            if getattr(module, name) not in found.setdefault(name, {}).values():
                found[name][_name(path)] = getattr(module, name)
    assert {name: list(homes) for name, homes in found.items() if len(homes) > 1} == {}


@pytest.mark.parametrize("product", APART)
def test_a_product_loads_no_other(product: str) -> None:
    """Importing every module of the sampler, of campaigns or of pictures loads none of those that stand apart."""
    loaded, own = _loaded()[product], _modules_of(product)
    other = [name for name in loaded if name.startswith(tuple(f"headstart.{a}" for a in APART[product]))]
    assert own
    assert set(own) <= loaded
    assert other == []


def test_no_module_is_long() -> None:
    """A module is what can be explained in a breath: at most 500 lines."""
    long = {_name(path): n for path in MODULES if (n := len(path.read_text().splitlines())) > MOST_LINES}
    assert long == {}
