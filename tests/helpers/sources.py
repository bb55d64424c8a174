"""The sources of the project, parsed: modules, imports, functions and lines."""

import ast
import itertools
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parent.parent.parent
PACKAGE = PROJECT / "fastdisc"  # the sources, also if an installed package is tested


class Module(NamedTuple):
    """A module of the package."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self):
        """The package that relative imports start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]


class Import(NamedTuple):
    """An import of a module of the package."""

    target: str
    line: int
    deferred: bool  # not executed when the importing module is: in a function, or for type checks


@cache
def modules():
    """All modules of the package, by name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PROJECT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path, ast.parse(path.read_text(), str(path)))
    return found


def imports_of(module, names):
    """The modules among `names` that a module imports, wherever it does."""
    return [
        Import(target, node.lineno, deferred)
        for node, deferred in _statements(module.tree, False)
        for target in _targets(node, module.package, names)
    ]


def _statements(node, deferred):
    """All nodes below one, each with whether it runs later than the module's body, or never."""
    for child in ast.iter_child_nodes(node):
        yield child, deferred
        later = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield from _statements(child, deferred or later or _is_for_type_checks(child))


def _is_for_type_checks(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _targets(node, package, names):
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _longest_known(alias.name, names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parents = package.split(".")
            parents = parents[: len(parents) - node.level + 1]
            base = ".".join([*parents, *filter(None, [node.module])])
        for alias in node.names:
            yield from _longest_known(f"{base}.{alias.name}", names)


def _longest_known(name, names):
    while name and name not in names:
        name = name.rpartition(".")[0]
    return [name] if name else []


def source_files(*suffixes, folders=("fastdisc", "tests", "bench")):
    """Source files of the project with these suffixes; those that Cython generates are not."""
    found = [path for folder in folders for path in (PROJECT / folder).rglob("*")]
    found += [PROJECT / "setup.py"]
    return sorted(path for path in found if path.suffix in suffixes)


def label(path):
    """The name of a file in the project."""
    return str(path.relative_to(PROJECT))


# --- lengths of functions -------------------------------------------------------------------------


class Function(NamedTuple):
    """A function, and the lines of its body without its docstring."""

    name: str
    lines: int


def functions_in(path):
    """The functions of a source file, in Python, Cython or C++."""
    text = path.read_text()
    if path.suffix == ".py":
        return python_functions(text)
    return cpp_functions(text) if path.suffix == ".h" else cython_functions(text)


def python_functions(text):
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            found.append(Function(node.name, node.end_lineno - body[0].lineno + 1 if body else 0))
    return found


CYTHON_FUNCTION = re.compile(r"( *)(?:cdef|cpdef|def)\b[^(=:]*?\b(\w+)\(")
DOCSTRING = re.compile(r'\s*[rR]?"""')


def cython_functions(text):
    """By indentation: a body ends before the next line that is indented no more than its header."""
    lines, found = text.splitlines(), []
    for at, line in enumerate(lines):
        match = CYTHON_FUNCTION.match(line)
        if not match:
            continue
        indent, name = len(match[1]), match[2]
        first = at
        while first < len(lines) and not re.search(r":\s*(#.*)?$", lines[first]):
            first += 1  # the header continues; a declaration has no colon at its end
        if any(_indent(text) <= indent and text.strip(" )") for text in lines[at + 1 : first]):
            continue
        first = _after_docstring(lines, first + 1)
        found.append(Function(name, _body_length(lines[first:], indent)))
    return found


def _body_length(lines, indent):
    body = itertools.takewhile(lambda line: not line.strip() or _indent(line) > indent, lines)
    return len("\n".join(body).rstrip().splitlines())


def _indent(line):
    return len(line) - len(line.lstrip())


def _after_docstring(lines, first):
    if first < len(lines) and DOCSTRING.match(lines[first]):
        quotes = lines[first].count('"""')
        while quotes < 2:
            first += 1
            quotes += lines[first].count('"""')
        first += 1
    return first


CPP_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
CPP_HEADER = re.compile(r"(\w+|operator\W+)\s*\([^;{}]*\)[\w\s:>&*-]*$")
CPP_KEYWORDS = {"if", "for", "while", "switch", "catch", "return"}


def cpp_functions(text):
    """By braces: a body is in braces that follow a parameter list."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])

    text, found, stack, last = CPP_NOISE.sub(blank, text), [], [], 0
    text = re.sub(r"^\s*#(?:[^\n\\]|\\.|\\\n)*", blank, text, flags=re.M)
    for place in re.finditer(r"[{};]", text):
        if place[0] == "{":
            header = CPP_HEADER.search(text[last : place.start()])
            name = header[1] if header and header[1] not in CPP_KEYWORDS else None
            inside = any(outer for outer, _ in stack)
            stack.append((None if inside else name, text.count("\n", 0, place.start())))
        elif place[0] == "}" and stack:
            name, start = stack.pop()
            if name:
                lines = text.count("\n", 0, place.start()) - start - 1
                found.append(Function(name, max(1, lines)))
        last = place.end()
    return found
