"""The three backends keep one contract, the layers import only to the right, and files stay short enough to read."""

import ast
import inspect
import re
from pathlib import Path

import pytest

from fastdisc import _kernels
from fastdisc._kernels import BACKENDS, Kernels

PROJECT = Path(__file__).parent.parent
ROOT = PROJECT / "fastdisc"  # the sources, also where a wheel of them is what is tested
FUNCTIONS = [name for name, value in vars(Kernels).items() if isinstance(value, staticmethod)]

# What one concept is called in each backend's sources; its docstring cites the same equations everywhere.
CONCEPTS = ["link_logistic", "link_softmax", "link_sigmoid", "link_linear"]
SOURCES = {
    "numpy": sorted((ROOT / "_kernels").glob("_numpy*.py")),
    "numba": sorted((ROOT / "_kernels/_numba").glob("*.py")),
    "cython": sorted((ROOT / "_kernels/_cython").glob("*.pxi")),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_names_and_arguments_are_equal(name):
    contract = list(inspect.signature(getattr(Kernels, name)).parameters)
    for backend in BACKENDS:
        assert list(inspect.signature(getattr(_kernels.load(backend), name)).parameters) == contract, backend


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_are_one_line_and_equal(name):
    first = inspect.getdoc(getattr(Kernels, name)).splitlines()[0]
    assert re.search(r"\(\d+\.\d+\)", first), "cites no equation"
    for backend in BACKENDS:
        assert inspect.getdoc(getattr(_kernels.load(backend), name)) == first, backend


def test_nothing_is_optional():
    for backend in BACKENDS:
        module = _kernels.load(backend)
        for name in FUNCTIONS:
            for parameter in inspect.signature(getattr(module, name)).parameters.values():
                assert parameter.default is inspect.Parameter.empty, f"{backend}.{name}: {parameter.name} is optional"


@pytest.mark.parametrize("concept", CONCEPTS)
def test_a_loss_is_one_function_in_each_backend(concept):
    for backend, files in SOURCES.items():
        text = "\n".join(file.read_text() for file in files)
        assert len(re.findall(rf"^(?:def|cdef void) {concept}\(", text, re.M)) == 1, backend


def test_equations_cited_are_listed():
    listed = set(re.findall(r"\((\d+\.\d+)\)", (ROOT / "_kernels/EQUATIONS.md").read_text()))
    for name in FUNCTIONS:
        cited = re.findall(r"\((\d+)\.(\d+)\)(?:-\((\d+)\.(\d+)\))?", inspect.getdoc(getattr(Kernels, name)).splitlines()[0])
        for chapter, first, _, last in cited:
            assert f"{chapter}.{first}" in listed, name
            assert not last or f"{chapter}.{last}" in listed, name


# estimator -> solver -> sweep -> kernel: a layer may import from those after it.
LAYERS = [
    (
        "estimators",
        {
            "logistic",
            "logistic_cv",
            "gaussian",
            "fisher",
            "least_squares",
            "bayes",
            "perceptron",
            "adaline",
            "online",
            "regression",
            "multiclass",
            "reject",
            "basis",
            "ranking",
        }
        | {"_base", "_generative", "_folds", "_splits", "_fold_paths", "_online_base", "_combined", "_joint"}
        | {"geometry", "plot", "_planes", "_regions"},
    ),
    ("problem", {"_problem", "_inference", "special", "metrics", "_decisions", "_rank_rounds"}),
    ("solvers", {"_solvers"}),
    (
        "sweep",
        {"_sweep", "_together", "_turned", "_kept", "_visits", "_rows", "_moments", "_rank_order", "_rank_sweep", "_rank_online"},
    ),
    ("kernels", {"_kernels"}),
]
RANK = {module: rank for rank, (_, modules) in enumerate(LAYERS) for module in modules}


def _imports(path):
    package = path.relative_to(ROOT).parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = list(package[: len(package) - node.level])
            target = base + (node.module.split(".") if node.module else [])
            for alias in node.names:
                yield (target or [alias.name])[0]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_layers_import_to_the_right(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if own in RANK:
        for imported in _imports(path):
            if imported in RANK and imported != own:
                assert RANK[imported] >= RANK[own], f"{own} imports {imported}"


def test_oracles_are_independent():
    nodes = list(ast.walk(ast.parse((PROJECT / "tests/oracles.py").read_text())))
    names = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert not any("fastdisc" in name for name in names)


@pytest.mark.parametrize(
    "path",
    [
        path
        for folder in ("fastdisc", "tests", "bench")
        for kind in ("py", "pxi", "h")
        for path in sorted((PROJECT / folder).rglob(f"*.{kind}"))
    ],
    ids=lambda path: str(path.relative_to(PROJECT)),
)
def test_no_file_has_more_than_500_lines(path):
    assert len(path.read_text().splitlines()) <= 500
