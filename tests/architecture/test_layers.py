"""Each layer imports only layers below it, and no modules import each other in a cycle."""

import ast
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import pytest
from helpers.sources import Module, imports_of, modules

# From the top to the bottom: a module may import modules of its own layer and of those below.
LAYERS = {
    "estimators": """_base _validation basis closed_form exceptions geometry linear metrics
        multiclass online plot ranking special""",
    "solvers": "_solvers",
    "objectives": "_objectives",
    "sources and rows": "_data",
    "settings": "runtime",
    "kernels": "_kernels _version",
}
RANKS = {part: rank for rank, parts in enumerate(LAYERS.values()) for part in parts.split()}
NAMES = frozenset(modules())


def rank(name):
    """The number of a module's layer, that of estimators for the package itself."""
    _, *parts = name.split(".")
    return RANKS[parts[0]] if parts else 0


def violations(module, names=NAMES):
    """Imports of a layer above the module's own."""
    return [
        f"line {found.line}: {module.name} imports {found.target}"
        for found in imports_of(module, names)
        if rank(found.target) < rank(module.name)
    ]


def cycle(graph):
    """Modules that import each other, the first and the last the same; empty if there are none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def import_time_graph():
    return {
        name: {found.target for found in imports_of(module, NAMES) if not found.deferred}
        for name, module in modules().items()
    }


def make_module(name, text):
    return Module(name, modules()["fastdisc.runtime"].path, ast.parse(text))


def test_table_has_each_part_of_the_package_once():
    listed = [part for parts in LAYERS.values() for part in parts.split()]
    assert len(listed) == len(set(listed))
    assert set(listed) == {name.split(".")[1] for name in NAMES if "." in name}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_module_imports_its_own_layer_and_those_below(name):
    assert violations(modules()[name]) == []


def test_no_modules_import_each_other():
    found = cycle(import_time_graph())
    assert not found, " -> ".join(found)


def test_dynamic_imports_stay_within_the_package_that_makes_them():
    for module in modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                assert ast.unparse(node.args[0]).startswith("f'{__name__}."), module.name
            assert not (isinstance(node, ast.Name) and node.id == "__import__"), module.name


@pytest.mark.parametrize(
    "text",
    [
        "from ._solvers import newton",
        "from . import _solvers",
        "import fastdisc._solvers.newton",
        "from fastdisc import _solvers",
        "from fastdisc._solvers.newton import solve",
        "def f():\n    from ._solvers import newton",
        "if TYPE_CHECKING:\n    from ._objectives.protocol import Objective",
        "from . import __version__",
    ],
)
def test_imports_of_a_layer_above_are_found(text):
    assert len(violations(make_module("fastdisc.runtime", text))) == 1


@pytest.mark.parametrize(
    ("text", "deferred"),
    [
        ("from ._data import rows", False),
        ("class C:\n    from ._data import rows", False),
        ("try:\n    import fastdisc._data.rows\nexcept ImportError:\n    pass", False),
        ("def f():\n    from ._data import rows", True),
        ("if TYPE_CHECKING:\n    from ._data import rows", True),
    ],
)
def test_imports_at_import_time_are_told_from_deferred_ones(text, deferred):
    (found,) = imports_of(make_module("fastdisc.runtime", text), NAMES)
    assert (found.target, found.deferred) == ("fastdisc._data.rows", deferred)


def test_cycles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}
    found = cycle(graph)
    assert set(found) == {"b", "c"}
    assert all(a in graph[b] or b in graph[a] for a, b in pairwise(found))
