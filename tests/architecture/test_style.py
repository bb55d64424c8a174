"""Rules of style that a program can check."""

import ast
import inspect
import re
import textwrap
from functools import cache

import pytest
from helpers import sources
from helpers.sources import PACKAGE, label, modules, source_files

from fastdisc._data.source import Source
from fastdisc._kernels import Kernels
from fastdisc._objectives.protocol import HessianOperator, Objective, SharedObjective

MAX_COLUMNS, MAX_FUNCTION_LINES, MAX_FILE_LINES, MAX_ARGUMENTS = 100, 50, 500, 8
FILES = source_files(".py", ".pyx", ".pxi", ".h")
INNER = ("_data", "_objectives", "_solvers", "runtime")  # layers that never see user's objects
NAMED_TUPLE_METHODS = {"_replace", "_asdict", "_make", "_fields"}  # public by their documentation
ALL_FILES = pytest.mark.parametrize("path", FILES, ids=label)
ALL_MODULES = pytest.mark.parametrize("name", sorted(modules()))


# --- lengths --------------------------------------------------------------------------------------


@ALL_FILES
def test_lines_are_short(path):
    lines = enumerate(path.read_text().splitlines(), 1)
    assert [number for number, line in lines if len(line) > MAX_COLUMNS] == []


@ALL_FILES
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= MAX_FILE_LINES


@ALL_FILES
def test_functions_are_short(path):
    found = sources.functions_in(path)
    assert [f for f in found if f.lines > MAX_FUNCTION_LINES] == []


def test_lengths_of_functions_leave_out_headers_and_docstrings():
    text = 'def f(a,\n      b):\n    """Two\n    lines."""\n    a = 1\n\n    return a\n'
    assert sources.python_functions(text) == [("f", 3)]
    assert sources.cython_functions(text) == [("f", 3)]


def test_lengths_of_cython_functions():
    text = """
    cdef extern from "x.h" nogil:
        double outer(double x,
                     double y)

    cdef inline double f(double* x, int n) noexcept nogil:
        cdef int i
        for i in range(n):
            x[i] = 0

        return x[0]

    cdef double table[3]
    """
    assert sources.cython_functions(textwrap.dedent(text)) == [("f", 5)]


def test_lengths_of_cpp_functions():
    text = """
    #define LOOP(i) for (int i = 0; i < 3; i++) {
    namespace {
    struct Tile { int n; };
    template <class T>
    static inline T first(const T* x,  // {
                          int n) noexcept {
        if (n) {
            return x[0];
        }
        return 0;
    }
    int second() { return 2; }
    }
    """
    assert sources.cpp_functions(textwrap.dedent(text)) == [("first", 4), ("second", 1)]


def test_kernels_have_at_most_eight_arguments():
    functions = {n: f for n, f in vars(Kernels).items() if isinstance(f, staticmethod)}
    assert functions
    for name, function in functions.items():
        assert len(inspect.signature(function).parameters) <= MAX_ARGUMENTS, name


# --- layouts --------------------------------------------------------------------------------------


def is_layout_file(path):
    kernels = PACKAGE / "_kernels"
    own = path.is_relative_to(kernels) and path.stem.startswith("layout")
    return own or path.is_relative_to(PACKAGE / "_data")


@pytest.mark.parametrize(
    "path", [path for path in source_files(".py", folders=["fastdisc"])], ids=label
)
def test_no_code_asks_for_a_layout(path):
    if not is_layout_file(path):
        found = re.findall(r"isinstance\(.*(?:CSR|Mapped)|\.csr\b(?!\s+import)", path.read_text())
        assert found == []


# --- capabilities ---------------------------------------------------------------------------------


def members(protocol):
    return {name for name in dir(protocol) if not name.startswith("_")}


def sniffs(tree):
    """Calls hasattr(owner, name) and getattr(owner, name, default): owner, name, and the call."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            n = {"hasattr": 2, "getattr": 3}.get(call.func.id)
            if len(call.args) == n:
                name = call.args[1]
                yield call.args[0], name.value if isinstance(name, ast.Constant) else None, call


def imported_names(tree):
    """Names that `import` binds to modules of others: what a platform provides may be asked for."""
    return {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }


def internal_names(tree):
    """Names that are imported from the layers below the estimators."""
    inner = re.compile(rf"(?:fastdisc)?\.*(?:{'|'.join((*INNER, '_kernels'))})\b")
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and inner.match("." * node.level + (node.module or ""))
        for alias in node.names
    }


def internal_parameters(tree):
    """(function, parameter) for each parameter that is annotated with a type of those layers."""
    internal = internal_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                words = re.findall(r"\w+", ast.unparse(a.annotation)) if a.annotation else []
                if internal & set(words):
                    yield node, a.arg


def test_inner_layers_do_not_ask_objects_for_their_attributes():
    """Capabilities are declared. Only modules may be asked what the platform provides."""
    found = [
        f"{module.name}, line {call.lineno}"
        for module in modules().values()
        if module.name.split(".")[1:2] and module.name.split(".")[1] in INNER
        for owner, _, call in sniffs(module.tree)
        if not (isinstance(owner, ast.Name) and owner.id in imported_names(module.tree))
    ]
    assert found == []


@ALL_MODULES
def test_estimators_ask_only_objects_of_users_for_their_attributes(name):
    """Not rows, sources, objectives or kernels, of which everything is known."""
    tree = modules()[name].tree
    inner = [
        (function, parameter, call)
        for function, parameter in internal_parameters(tree)
        for owner, _, call in sniffs(function)
        if isinstance(owner, ast.Name) and owner.id == parameter
    ]
    assert [f"line {call.lineno}: {parameter}" for _, parameter, call in inner] == []


def test_no_module_asks_whether_an_object_has_a_member_of_a_contract():
    contract = set.union(*map(members, (Objective, SharedObjective, HessianOperator, Source)))
    contract -= {"shape", "columns"}  # which arrays and data frames of users have, too
    found = [
        f"{module.name}, line {call.lineno}: {name}"
        for module in modules().values()
        for _, name, call in sniffs(module.tree)
        if name in contract
    ]
    assert found == []


# --- private names --------------------------------------------------------------------------------


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def is_own(node):
    """self, cls, an instance of cls, or super()."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ("super", "cls")
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def defined_names(tree):
    """Functions, methods and attributes that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if is_own(node.value):
                yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@cache
def names_of_the_package():
    return {name for module in modules().values() for name in defined_names(module.tree)}


def private_uses(tree):
    """Uses of private names that another module of the package defines, of objects other than
    oneself."""
    foreign = names_of_the_package() - set(defined_names(tree)) - NAMED_TUPLE_METHODS
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and is_private(node.attr)
        if node.attr in foreign and not is_own(node.value)
    ]


def private_imports(module):
    """Private names, other than modules, that are imported from modules of the package."""
    return [
        f"line {node.lineno}: {alias.name}"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
        if is_private(alias.name) and not any(name.endswith(f".{alias.name}") for name in modules())
    ]


@ALL_MODULES
def test_private_names_are_used_where_they_are_defined(name):
    assert private_uses(modules()[name].tree) == []
    assert private_imports(modules()[name]) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("objective._sums(W)", 1),
        ("self.data._sums(W)", 1),
        ("self._sums(W)", 0),
        ("super()._sums(W)", 0),
        ("batch._replace(s=s)", 0),
        ("class A:\n    def _like(self): pass\nA()._like()", 0),
    ],
)
def test_uses_of_private_names_are_found(text, count):
    assert len(private_uses(ast.parse(text))) == count


# --- tests ----------------------------------------------------------------------------------------


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", source_files(".py", folders=["tests"]), ids=label)
def test_tests_do_not_import_tests(path):
    parts = {part for name in imported_modules(path) for part in name.split(".")}
    assert not [part for part in parts if part.startswith("test_") or part == "conftest"]


def test_oracles_are_independent():
    oracles = [path for path in FILES if path.stem == "oracles"]
    assert oracles
    for path in oracles:
        assert not any("fastdisc" in name for name in imported_modules(path))
