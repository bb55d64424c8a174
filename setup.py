"""The extension modules: one Cython source, built once for each SIMD level of the target. All else is in pyproject.toml."""

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
X86 = platform.machine().lower() in ("x86_64", "amd64") and "arm64" not in os.environ.get("ARCHFLAGS", "")
MSVC = sys.platform == "win32"

LEVELS = {"baseline": []}
if X86:
    LEVELS["v3"] = ["/arch:AVX2"] if MSVC else ["-march=x86-64-v3"]
    LEVELS["v4"] = ["/arch:AVX512"] if MSVC else ["-march=x86-64-v4", "-mprefer-vector-width=512"]

# No -ffast-math: it breaks the tests for NaN, and at link time switches the whole process to flush-to-zero. These two only
# promise that nobody reads errno or the exception flags after arithmetic; without them no loop with a condition is vectorised.
FLAGS = ["/O2"] if MSVC else ["-O3", "-fno-math-errno", "-fno-trapping-math", "-Wno-unused-function"]


def openmp_flags():
    """Compiler and linker flags for OpenMP, or nothing where a trial build fails or FASTDISC_NO_OPENMP is set."""
    if os.environ.get("FASTDISC_NO_OPENMP"):
        return [], []
    if MSVC:
        return ["/openmp"], []
    if sys.platform == "darwin":
        prefix = os.environ.get("LIBOMP_PREFIX", "/opt/homebrew/opt/libomp")
        flags = ["-Xpreprocessor", "-fopenmp", f"-I{prefix}/include"], [f"-L{prefix}/lib", "-lomp"]
    else:
        flags = ["-fopenmp"], ["-fopenmp"]
    compiler = os.environ.get("CXX") or shutil.which("c++") or "g++"
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "trial.cpp")
        with open(source, "w") as file:
            file.write("#include <omp.h>\nint main() { return omp_get_max_threads() < 1; }\n")
        command = [*compiler.split(), *flags[0], source, "-o", os.path.join(folder, "trial"), *flags[1]]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            print("fastdisc: no OpenMP with this compiler, the kernels will run on one thread", file=sys.stderr)
            return [], []
    return flags


class BuildInParallel(build_ext):
    """Three modules of the same size: two cores build them in two thirds of the time."""

    def initialize_options(self):
        super().initialize_options()
        self.parallel = os.cpu_count()


compile_openmp, link_openmp = openmp_flags()
# All of the source but the three modules, which only include it.
sources = sorted(str(path) for pattern in ("*.pxi", "*.h") for path in pathlib.Path(FOLDER).glob(pattern))
extensions = [
    Extension(
        f"fastdisc._kernels._cython.{level}",
        [f"{FOLDER}/{level}.pyx"],
        language="c++",
        include_dirs=[numpy.get_include(), FOLDER],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=FLAGS + flags + compile_openmp,
        extra_link_args=link_openmp,
        depends=sources,
    )
    for level, flags in LEVELS.items()
]
directives = {"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True, "initializedcheck": False}
directives["freethreading_compatible"] = True  # no state of the modules changes after import
setup(ext_modules=cythonize(extensions, compiler_directives=directives), cmdclass={"build_ext": BuildInParallel})
