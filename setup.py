"""The extension modules: one Cython source, built once for each SIMD level of the target.

All else is in pyproject.toml.
"""

import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FOLDER = "fastdisc/_kernels/_cython"
X86 = platform.machine().lower() in ("x86_64", "amd64")
X86 = X86 and "arm64" not in os.environ.get("ARCHFLAGS", "")
MSVC = sys.platform == "win32"

LEVELS: dict[str, list[str]] = {"baseline": []}
if X86:
    LEVELS["v3"] = ["/arch:AVX2"] if MSVC else ["-march=x86-64-v3"]
    LEVELS["v4"] = ["/arch:AVX512"] if MSVC else ["-march=x86-64-v4", "-mprefer-vector-width=512"]

# No -ffast-math: it breaks the tests for NaN, and at link time switches the whole process to
# flush-to-zero. These two only promise that errno and the exception flags are not read after
# arithmetic; without them no loop with a condition is vectorised.
FLAGS = (
    ["/O2"] if MSVC else ["-O3", "-fno-math-errno", "-fno-trapping-math", "-Wno-unused-function"]
)

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    # The only state that changes after import is the buffer pool, a list with atomic operations.
    "freethreading_compatible": True,
}


def openmp_flags() -> tuple[list[str], list[str]]:
    """Compiler and linker flags; none if a trial build fails or FASTDISC_NO_OPENMP is set."""
    if os.environ.get("FASTDISC_NO_OPENMP"):
        return [], []
    if MSVC:
        return ["/openmp"], []
    if sys.platform == "darwin":
        prefix = os.environ.get("LIBOMP_PREFIX", "/opt/homebrew/opt/libomp")
        compile_flags = ["-Xpreprocessor", "-fopenmp", f"-I{prefix}/include"]
        link_flags = [f"-L{prefix}/lib", "-lomp"]
    else:
        compile_flags, link_flags = ["-fopenmp"], ["-fopenmp"]
    compiler = os.environ.get("CXX") or shutil.which("c++") or "g++"
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "trial.cpp"
        source.write_text("#include <omp.h>\nint main() { return omp_get_max_threads() < 1; }\n")
        output = ["-o", str(source.with_suffix(""))]
        command = [*compiler.split(), *compile_flags, str(source), *output, *link_flags]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            message = "no OpenMP with this compiler, the kernels will run on one thread"
            print(f"fastdisc: {message}", file=sys.stderr)
            return [], []
    return compile_flags, link_flags


class BuildInParallel(build_ext):
    """Three modules of the same size: two cores build them in two thirds of the time."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.parallel = os.cpu_count()


def source_files() -> list[str]:
    """All of the source except for the three modules, which only include it."""
    folder = pathlib.Path(FOLDER)
    return sorted(str(path) for pattern in ("*.pxi", "*.h") for path in folder.glob(pattern))


compile_openmp, link_openmp = openmp_flags()
extensions = [
    Extension(
        f"fastdisc._kernels._cython.{level}",
        [f"{FOLDER}/{level}.pyx"],
        language="c++",
        include_dirs=[numpy.get_include(), FOLDER],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=FLAGS + flags + compile_openmp,
        extra_link_args=link_openmp,
        depends=source_files(),
    )
    for level, flags in LEVELS.items()
]
setup(
    ext_modules=cythonize(extensions, compiler_directives=DIRECTIVES),
    cmdclass={"build_ext": BuildInParallel},
)
