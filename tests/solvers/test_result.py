"""The certificate of a result, and the trace of a solver."""

import numpy as np
import pytest

from fastdisc._objectives.protocol import Evaluation
from fastdisc._solvers.result import Result, Trace, make_result


def found(value=1.0, errors=2.0):
    return Evaluation(value, errors, np.zeros((1, 3)))


W = np.array([[5.0, 3.0, 4.0]])


def test_result_is_relative_to_the_gradient_at_zero():
    result = make_result(W, 0.5, 100.0, 1e-2, 7, Trace())
    assert (result.converged, result.gradient_norm, result.n_iter) == (True, 0.005, 7)
    assert not make_result(W, 2.0, 100.0, 1e-2, 7, Trace()).converged
    assert make_result(W, 0.0, 0.0, 1e-2, 0, Trace()).gradient_norm == 0.0


def test_next_solution_starts_where_this_one_was_evaluated():
    assert Result(W, True, 1, 0.0, {}).start is W
    before = W - 1
    assert Result(W, True, 1, 0.0, {}, False, before).start is before


def test_trace_records_loss_errors_and_norm_without_the_intercept():
    trace = Trace()
    assert not trace.add("name", found(), W)
    assert trace.history == {"loss": [1.0], "errors": [2.0], "norm": [5.0]}


def test_trace_calls_back_with_step_and_values():
    calls = []
    trace = Trace(callback=lambda step, values: calls.append((step, values)))
    trace.add("name", found(), W)
    trace.add("name", found(0.5), W)
    assert calls[1] == (1, {"loss": 0.5, "errors": 2.0, "norm": 5.0})
    assert not trace.stopped


@pytest.mark.parametrize(
    ("errors", "stops"),
    [
        ([5, 4, 3, 2, 1], [False] * 5),
        ([5, 5, 5], [False, False, True]),
        ([5, 4, 4, 3, 3, 3], [False, False, False, False, False, True]),
        ([5, 0], [False, True]),
    ],
)
def test_patience_ends_without_fewer_errors(errors, stops):
    trace = Trace(patience=2)
    assert [trace.add("name", found(errors=e), W) for e in errors] == stops


def test_verbose_trace_prints_and_quiet_one_does_not(capsys):
    Trace().add("name", found(), W)
    Trace().print("name", "text")
    assert capsys.readouterr().out == ""
    trace = Trace(verbose=1)
    for _ in range(5):
        trace.add("name", found(), W, every=2)
    trace.print("name", "text")
    out = capsys.readouterr().out
    assert out.count("loss 1") == 3 and "[name] text" in out
    trace = Trace(verbose=2)
    for _ in range(5):
        trace.add("name", found(), W, every=2)
    assert capsys.readouterr().out.count("loss 1") == 5
