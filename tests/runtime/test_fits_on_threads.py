"""Fits on several threads, and after a fork."""

import os
import subprocess
import sys

import pytest
from helpers.assertions import same_bits
from helpers.cases import FAST_BACKENDS, THREADS

from fastdisc import LogisticRegression


def test_fits_do_not_depend_on_threads(rng):
    X = rng.standard_normal((20_000, 5))
    y = X.sum(axis=1) + rng.standard_normal(20_000) > 0
    models = [LogisticRegression(n_threads=n).fit(X, y) for n in THREADS]
    same_bits([(model.coef_, model.intercept_, model.predict_proba(X)) for model in models])


FORK = """
import os, sys
import numpy as np
import fastdisc

rng = np.random.default_rng(0)
X, y = rng.standard_normal((200000, 8)), rng.integers(0, 2, 200000)
fastdisc.set_config(backend={backend!r})
parent = fastdisc.LogisticRegression(n_threads=2).fit(X, y)  # a parallel region before the fork
pid = os.fork()
if pid == 0:
    child = fastdisc.LogisticRegression(n_threads=2).fit(X, y)
    os._exit(0 if np.allclose(child.coef_, parent.coef_, rtol={tol}, atol=0) else 3)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.parametrize("name", FAST_BACKENDS)
def test_fit_in_a_forked_child_does_not_hang(name):
    code = FORK.format(backend=name, tol=0 if name == "cython" else 1e-9)
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, timeout=240, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
