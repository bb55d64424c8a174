"""Bad input: what is passed, what the error says; and that good input is not copied."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import fastdisc
from fastdisc import LogisticRegression, _validate
from fastdisc._kernels import CSR

X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.arange(30) % 2


def spoiled(value, row=7, column=1, dtype=float):
    bad = X.astype(dtype)
    bad[row, column] = value
    return bad


BAD = {
    "NaN in X": ({"X": spoiled(np.nan)}, r"NaN, first in row 7, column 1"),
    "infinity in X": ({"X": spoiled(np.inf)}, r"infinity, first in row 7, column 1"),
    "minus infinity in float32": ({"X": spoiled(-np.inf, 29, 2, np.float32)}, r"infinity, first in row 29, column 2"),
    "NaN in F order": ({"X": np.asfortranarray(spoiled(np.nan))}, r"NaN, first in row 7, column 1"),
    "NaN in CSR": ({"X": sparse.csr_array(spoiled(np.nan))}, r"NaN, first in row 7, column 1"),
    "NaN in a row of weight 0": ({"X": spoiled(np.nan), "sample_weight": np.arange(30) != 7}, r"NaN, first in row 7"),
    "finite but too large": ({"X": np.sign(X) * 1.7e308}, "too large"),
    "no rows": ({"X": X[:0], "y": Y[:0]}, "0 sample"),
    "no columns": ({"X": X[:, :0]}, "0 feature"),
    "one dimension": ({"X": X[0], "y": Y[:3]}, "2D array"),
    "complex X": ({"X": X + 1j}, "Complex"),
    "words in X": ({"X": np.array([["a", "b"]] * 30)}, "could not convert|dtype"),
    "short y": ({"y": Y[:20]}, "X has 30 rows, y has 20"),
    "no y": ({"y": None}, "y"),
    "one class": ({"y": np.zeros(30, int)}, "only one class: .*0"),
    "continuous y": ({"y": X[:, 0]}, r"Unknown label type: continuous.*row 0"),
    "NaN in y": ({"y": np.where(np.arange(30) == 4, np.nan, Y)}, "Input y contains NaN, first in row 4"),
    "infinity in y": ({"y": np.where(np.arange(30) == 4, np.inf, Y)}, "Input y contains infinity, first in row 4"),
    "mixed labels": ({"y": np.array([1, "a", None] * 10, dtype=object)}, "mixed types"),
    "short weights": ({"sample_weight": np.ones(20)}, r"\(20,\), expected \(30,\)"),
    "2-D weights": ({"sample_weight": np.ones((30, 1))}, "1D"),
    "negative weight": ({"sample_weight": np.where(np.arange(30) == 9, -1.0, 1)}, "row 9 it is -1"),
    "NaN weight": ({"sample_weight": np.where(np.arange(30) == 9, np.nan, 1)}, "row 9 it is nan"),
    "weights all zero": ({"sample_weight": np.zeros(30)}, "zero in every row"),
    "C zero": ({"C": 0}, "C must be a number > 0, got 0"),
    "C a word": ({"C": "1"}, "C must be a number > 0, got '1'"),
    "tol negative": ({"tol": -1}, "tol must be a number >= 0"),
    "max_iter a fraction": ({"max_iter": 1.5}, "max_iter must be a whole number >= 1"),
    "solver unknown": ({"solver": "magic"}, "solver must be one of 'auto', 'newton'.*got 'magic'"),
    "eta negative": ({"solver": "gd", "eta": -0.1}, "eta must be a number > 0"),
    "backend unknown": ({"backend": "fortran"}, "backend must be"),
    "threads zero": ({"n_threads": 0}, "n_threads must be"),
    "class_weight a strange word": ({"class_weight": "fair"}, "class_weight must be"),
    "class_weight of no class": ({"class_weight": {5: 1.0}}, r"\[5\]"),
    "class_weight zero": ({"class_weight": {0: 0, 1: 0}}, "leaves no row"),
    "class_weight a list": ({"class_weight": [1, 2]}, "None, 'balanced' or a dict"),
    "NaN among object labels": ({"y": np.array([0.0, 1.0, np.nan] * 10, dtype=object)}, "Input y contains NaN, first in row 2"),
    "continuous object labels": ({"y": np.array([0.5, 1.2, 2.5] * 10, dtype=object)}, "continuous"),
    "fit_intercept a word": ({"fit_intercept": "no"}, "fit_intercept must be one of True, False, got 'no'"),
    "verbose negative": ({"verbose": -1}, "verbose must be a whole number >= 0"),
    "n_threads a flag": ({"n_threads": True}, "n_threads must be"),
    "too wide for Newton": ({"X": sparse.csr_array((30, 30_000)), "solver": "newton"}, "take solver='lbfgs'"),
    "sums that overflow": ({"X": X * 1e200}, "too large"),
    "class_weight negative": ({"class_weight": {0: -1.0}}, "class_weight"),
    "penalty unknown": ({"penalty": "l3"}, "penalty must be one of 'deprecated', 'l2', 'l1', 'elasticnet', None, got 'l3'"),
    "l1_ratio too large": ({"l1_ratio": 1.1}, "l1_ratio must be a number from 0 to 1, got 1.1"),
    "l1_ratio negative": ({"l1_ratio": -0.1}, "l1_ratio must be a number >= 0, got -0.1"),
    "l1_ratio NaN": ({"l1_ratio": np.nan}, "l1_ratio must be a number >= 0, got nan"),
    "L1 and a solver without": ({"solver": "lbfgs", "l1_ratio": 1.0}, "solver 'lbfgs' has no L1 penalty: take .*'proximal'"),
    "penalty l1 and a solver without": ({"solver": "newton", "penalty": "l1"}, "solver 'newton' has no L1 penalty"),
    "short offset": ({"offset": np.zeros(20)}, r"offset.shape == \(20, 1\), expected \(30, 1\)"),
    "offset for two scores": ({"offset": np.zeros((30, 2))}, r"offset.shape == \(30, 2\), expected \(30, 1\)"),
    "one offset for three scores": ({"offset": np.zeros(30), "y": np.arange(30) % 3}, r"expected \(30, 3\)"),
    "NaN offset": ({"offset": np.where(np.arange(30) == 9, np.nan, 0)}, "offset must be finite; in row 9"),
    "infinite offset": ({"offset": np.where(np.arange(30) == 9, np.inf, 0)}, "offset must be finite; in row 9"),
    "too many priors": ({"priors": [0.2, 0.3, 0.5]}, r"priors.shape == \(3,\), expected \(2,\)"),
    "priors that do not add up": ({"priors": [0.5, 0.6]}, "priors must be positive and add up to 1"),
    "a prior of zero": ({"priors": [0.0, 1.0]}, "priors must be positive and add up to 1"),
    "a prior of NaN": ({"priors": [0.5, np.nan]}, "priors must be positive and add up to 1"),
    "reference_class unknown": ({"reference_class": 2}, r"reference_class must be one of \[0, 1\], got 2"),
    "reference_class of another type": ({"reference_class": "one"}, "reference_class must be one of"),
    "early_stopping zero": ({"early_stopping": 0}, "early_stopping must be a whole number >= 1, got 0"),
    "early_stopping a fraction": ({"early_stopping": 2.5}, "early_stopping must be a whole number >= 1"),
    "callback a word": ({"callback": "print"}, "callback must be callable, got 'print'"),
    "standardize a word": ({"standardize": "yes"}, "standardize must be one of True, False, got 'yes'"),
}
DATA = ("X", "y", "sample_weight", "offset")


@pytest.mark.parametrize("what", BAD)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_bad_input_is_named(what):
    given, message = BAD[what]
    given = dict(given)
    data = {"X": X, "y": Y} | {key: given.pop(key) for key in DATA if key in given}
    model = LogisticRegression().fit(X, Y)
    before = model.coef_.copy()
    model.set_params(**given)
    with pytest.raises(ValueError, match=message):
        model.fit(**data)
    assert np.array_equal(model.coef_, before), "a failed fit changed the model"


@pytest.mark.parametrize("what", [what for what in BAD if "prior" in what])
def test_bad_priors_of_a_fitted_model(what):
    given, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        LogisticRegression().fit(X, Y).with_priors(given["priors"])


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "decision_function"])
@pytest.mark.parametrize("K", [2, 3])
def test_bad_input_to_predict(method, K):
    model = LogisticRegression().fit(X, np.arange(30) % K)
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        with pytest.raises(ValueError, match=f"{word}, first in row 7, column 1"):
            getattr(model, method)(spoiled(value))
    with pytest.raises(ValueError, match="3 features"):
        getattr(model, method)(X[:, :2])


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "int8", "int16", "bool"])
def test_good_features_are_not_copied(dtype):
    for A in (np.ones((8, 3), dtype), np.asfortranarray(np.ones((8, 3), dtype)), np.ones((16, 6), dtype)[::2, ::2]):
        assert np.shares_memory(_validate.features(LogisticRegression(), A, reset=True), A)


def test_good_csr_is_not_copied():
    S = sparse.csr_array(np.eye(5))
    A = _validate.features(LogisticRegression(), S, reset=True)
    assert isinstance(A, CSR) and np.shares_memory(A.data, S.data) and np.shares_memory(A.indices, S.indices)


@pytest.mark.parametrize("form", [sparse.csc_array, sparse.coo_array, sparse.csr_matrix, sparse.csr_array])
def test_sparse_formats(form):
    dense = np.where(np.abs(X) > 0.5, X, 0)
    expected = LogisticRegression(tol=1e-10).fit(dense, Y)
    actual = LogisticRegression(tol=1e-10).fit(form(dense), Y)
    np.testing.assert_allclose(actual.coef_, expected.coef_, rtol=1e-9, atol=1e-11)


def test_other_byte_order():
    np.testing.assert_allclose(LogisticRegression().fit(X.astype(">f8"), Y).coef_, LogisticRegression().fit(X, Y).coef_)


def test_strided_csr_is_read_as_it_is():
    S = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0))
    for part in ("data", "indices"):
        strided = S.copy()
        wide = np.zeros(2 * S.nnz, getattr(S, part).dtype)
        wide[::2] = getattr(S, part)
        setattr(strided, part, wide[::2])
        assert np.array_equal(LogisticRegression().fit(strided, Y).coef_, LogisticRegression().fit(S, Y).coef_)


def test_unaligned_features():
    packed = np.zeros(30, dtype=[("flag", "i1"), ("x", "f8", 3)])
    packed["x"] = X
    assert not packed["x"].flags.aligned
    assert np.array_equal(LogisticRegression().fit(packed["x"], Y).coef_, LogisticRegression().fit(X, Y).coef_)


@pytest.mark.parametrize("part", ["indices", "indptr"])
def test_broken_csr_is_refused(part):
    S = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0))
    getattr(S, part)[3] = 99
    with pytest.raises(ValueError, match="not a valid CSR"):
        LogisticRegression().fit(S, Y)


LABELS = [
    np.array([3, -5, 3, 7]),
    np.array([0, 10**12, 0]),
    np.array([2**63 + 5, 2**63], np.uint64),
    np.array([True, False]),
    np.array([2, 0, 255], np.uint8),
    np.array(["b", "a", "b"]),
    np.array(["b", "a", "c"], dtype=object),
    np.array([1.0, 0.0, 2.0]),
]


@pytest.mark.parametrize("y", LABELS, ids=lambda y: str(y.dtype))
def test_labels_are_those_of_unique(y):
    classes, codes = _validate.labels(y, len(y))
    expected, inverse = np.unique(y, return_inverse=True)
    assert classes.dtype == expected.dtype and np.array_equal(classes, expected)
    assert codes.dtype == np.int32 and np.array_equal(codes, inverse)


FAILING = ["Adaline", "BernoulliNB", "FisherDiscriminant", "GaussianNB", "LeastSquaresClassifier", "LeastSquaresClassifierCV"]
FAILING += ["LinearDiscriminantAnalysis", "LogisticRegression", "LogisticRegressionCV", "OnlineClassifier", "Perceptron"]
FAILING += ["QuadraticDiscriminantAnalysis", "SigmoidRegression"]


@pytest.mark.parametrize("name", FAILING)
def test_a_failed_fit_changes_nothing(name):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(fastdisc, name)().fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="class"):
        model.fit(X[:, :3], np.zeros(60, int))
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("model", ["LogisticRegression", "OnlineClassifier", "GaussianNB"])
def test_a_stream_keeps_its_classes(model):
    X, y = np.random.default_rng(0).standard_normal((60, 4)), np.arange(60) % 2
    stream = getattr(fastdisc, model)()
    with pytest.raises(ValueError, match="at least 2"):
        stream.partial_fit(X, np.ones(60, int), classes=[1])
    stream.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="is not what it was before"):
        stream.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="y is None"):
        stream.partial_fit(X, None)
