"""The disk cache of the Numba backend: stale machine code is never run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fastdisc._kernels

KERNELS = Path(fastdisc._kernels.__file__).parent

CALLEE = """
from .options import jit

@jit()
def callee(x):
    return x + {step}
"""
CALLER = """
from collections import namedtuple
from .callee import callee
from .options import driver, jit

Foreign = namedtuple("Foreign", ["x"])
Foreign.__module__ = "elsewhere"

@jit()
def caller(x):
    return callee(x)

@jit()
def caller_of_foreign(pair):
    return callee(pair.x)
"""
RUN = """
from fastdisc._kernels._numba import caller as module
result = module.caller(1.0)
foreign = module.caller_of_foreign(module.Foreign(1.0))
hits = sum(module.caller.stats.cache_hits.values())
foreign_hits = sum(module.caller_of_foreign.stats.cache_hits.values())
print(result, hits, foreign, foreign_hits, module.caller.stats.cache_path is None)
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the kernels' sources with two functions more, one of which calls the other."""
    target = tmp_path / "fastdisc" / "_kernels"
    target.mkdir(parents=True)
    (tmp_path / "fastdisc" / "__init__.py").touch()
    for file in KERNELS.glob("*.py"):
        shutil.copy(file, target)
    no_cache = shutil.ignore_patterns("__pycache__")
    shutil.copytree(KERNELS / "_numba", target / "_numba", ignore=no_cache)
    (target / "_numba" / "callee.py").write_text(CALLEE.format(step=1))
    (target / "_numba" / "caller.py").write_text(CALLER)
    return tmp_path


def run(package, **environment):
    """Result and cache hits of the caller, the same for a type from elsewhere, and if no cache."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    env |= {"PYTHONDONTWRITEBYTECODE": "1"} | environment
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, cwd=package, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def cached_files(package):
    return {path.name for path in (package / "fastdisc/_kernels/_numba/__pycache__").glob("*.nb?")}


def test_caller_is_compiled_again_if_the_source_of_its_callee_changes(package):
    assert run(package) == "2.0 0 2.0 0 False"
    first = cached_files(package)
    assert any("caller" in name for name in first)
    assert run(package) == "2.0 1 2.0 0 False", "not taken from the cache"
    (package / "fastdisc/_kernels/_numba/callee.py").write_text(CALLEE.format(step=10))
    assert run(package) == "11.0 0 11.0 0 False", "stale machine code"
    assert cached_files(package) and not cached_files(package) & first, "stale files remain"
    with (package / "fastdisc/_kernels/enums.py").open("a") as file:
        file.write("\nADDED = 1\n")
    assert run(package) == "11.0 0 11.0 0 False", "shared sources do not count"


def test_other_folder_is_used_if_sources_are_read_only(package, tmp_path):
    (package / "fastdisc/_kernels/_numba/__pycache__").write_text("not a folder")
    elsewhere = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert run(package, **elsewhere) == "2.0 0 2.0 0 False"
    assert run(package, **elsewhere) == "2.0 1 2.0 0 False"
    assert list((tmp_path / "cache").rglob("caller*.nbc"))


def test_functions_are_compiled_each_time_if_no_folder_is_writable(package, tmp_path):
    (package / "fastdisc/_kernels/_numba/__pycache__").write_text("not a folder")
    (tmp_path / "cache").write_text("not a folder")
    nowhere = {"HOME": str(tmp_path / "cache"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for _ in range(2):
        assert run(package, **nowhere) == "2.0 0 2.0 0 True"
