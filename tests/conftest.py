"""Fixtures. Everything else that tests share is in `helpers`."""

import numpy as np
import pytest
from helpers.cases import FAST_BACKENDS

from fastdisc import _kernels


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


@pytest.fixture(params=_kernels.BACKENDS)
def backend(request):
    return _kernels.load(request.param)


@pytest.fixture(params=FAST_BACKENDS)
def fast(request):
    return _kernels.load(request.param)


@pytest.fixture
def reference():
    return _kernels.load("numpy")
