"""The three backends keep one contract: names, arguments, docstrings, equations."""

import inspect
import re
from pathlib import Path

import pytest

import fastdisc
from fastdisc import _kernels
from fastdisc._kernels import BACKENDS, ROW_LOSSES, Kernels

KERNELS = Path(_kernels.__file__).parent
PROJECT = Path(__file__).parent.parent.parent
# The sources, also if an installed package is tested.
SOURCES = PROJECT / "fastdisc/_kernels" if PROJECT in Path(fastdisc.__file__).parents else KERNELS
FUNCTIONS = [name for name, value in vars(Kernels).items() if isinstance(value, staticmethod)]
MAX_ARGUMENTS = 8
LOSS_FILES = {"_numpy": ".py", "_numba": ".py", "_cython": ".p[xy][xidh]"}


def parameters(backend, name):
    return inspect.signature(getattr(_kernels.load(backend), name)).parameters


def first_line(name):
    return inspect.getdoc(getattr(Kernels, name)).splitlines()[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_backends_have_the_arguments_of_the_contract(name):
    contract = list(inspect.signature(getattr(Kernels, name)).parameters)
    assert len(contract) <= MAX_ARGUMENTS
    for backend in BACKENDS:
        assert list(parameters(backend, name)) == contract, backend


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_are_the_first_line_of_the_contract(name):
    assert re.search(r"\(\d+\.\d+\)", first_line(name)), "cites no equation"
    for backend in BACKENDS:
        assert inspect.getdoc(getattr(_kernels.load(backend), name)) == first_line(name), backend


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_argument_is_optional(backend):
    for name in FUNCTIONS:
        for parameter in parameters(backend, name).values():
            assert parameter.default is inspect.Parameter.empty, f"{name}: {parameter.name}"


@pytest.mark.parametrize("loss", [spec.name for spec in ROW_LOSSES.values()])
@pytest.mark.parametrize("backend", LOSS_FILES)
def test_each_loss_is_one_function_in_each_backend(backend, loss):
    files = sorted((SOURCES / backend).glob(f"*{LOSS_FILES[backend]}"))
    text = "\n".join(file.read_text() for file in files)
    found = re.findall(rf"^(?:cdef [\w ]+|def )\s*loss_{loss}\(", text, re.M)
    assert len(found) == 1


def test_cited_equations_are_listed():
    listed = set(re.findall(r"\((\d+\.\d+)\)", (KERNELS / "EQUATIONS.md").read_text()))
    for name in FUNCTIONS:
        cited = re.findall(r"\((\d+)\.(\d+)\)(?:-\((\d+)\.(\d+)\))?", first_line(name))
        for chapter, first, _, last in cited:
            assert f"{chapter}.{first}" in listed, name
            assert not last or f"{chapter}.{last}" in listed, name
