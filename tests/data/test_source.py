"""Sources: memory, and one of several batches, keep the contract of `reduce` and `draw`."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.problems import make_features, make_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisc._data.dense import DenseRows
from fastdisc._data.outputs import sweep_flops, sweep_grid
from fastdisc._data.source import MIN_CLASS_ROWS, MemorySource, Source
from fastdisc._kernels import Batch
from fastdisc._objectives.row_sums import Product, ProductTask, Sums, SweepTask

PROFILE = settings(max_examples=30, deadline=None, derandomize=True)


class BatchesSource:
    """Several batches, as from files: `reduce` merges the partial sums in the order of the rows."""

    def __init__(self, batches):
        self.parts = [MemorySource(batch) for batch in batches]

    @property
    def n_rows(self):
        return sum(part.n_rows for part in self.parts)

    @property
    def n_columns(self):
        return self.parts[0].n_columns

    @property
    def total_weight(self):
        return sum(part.total_weight for part in self.parts)

    def reduce(self, task):
        first, *others = (part.reduce(task) for part in self.parts)
        for sums in others:
            first = first.merge(sums)
        return first

    def draw(self, m, seed, by_norm=False):
        X = np.vstack([part.X.dense() for part in self.parts])
        r, s = (np.concatenate([part.batch[i] for part in self.parts]) for i in (1, 2))
        return MemorySource(Batch(DenseRows(X), r, s)).draw(m, seed, by_norm)


def split(batch, cuts):
    """The batch in parts that end at these rows."""
    edges = [0, *sorted(cuts), len(batch.r)]
    parts = [slice(lo, hi) for lo, hi in pairwise(edges) if hi > lo]
    return [Batch(batch.X.take(rows), batch.r[rows], batch.s[rows]) for rows in parts]


def members(source):
    return {name for name in dir(source) if not name.startswith("_")}


@pytest.mark.parametrize("make", [MemorySource, lambda batch: BatchesSource(split(batch, [70]))])
def test_sources_have_the_members_of_the_contract(rng, make):
    batch, _, _ = make_problem(rng, 200, 4, 3)
    source = make(batch)
    assert members(Source) <= members(source)
    assert (source.n_rows, source.n_columns) == (200, 4)
    assert source.total_weight == pytest.approx(batch.s.sum())
    assert isinstance(source.draw(50, 0), MemorySource)


@PROFILE
@given(seed=st.integers(0, 2**31), cuts=st.lists(st.integers(1, 199), max_size=4, unique=True))
def test_sums_over_batches_are_those_of_memory(seed, cuts):
    rng = np.random.default_rng(seed)
    batch, loss, W = make_problem(rng, 200, 4, 3)
    V = rng.standard_normal(W.shape)
    memory, batches = MemorySource(batch), BatchesSource(split(batch, cuts))
    for order in (1, 2):
        task = SweepTask(loss, W, order, False)
        for one, other in zip(memory.reduce(task), batches.reduce(task), strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-9)
    task = ProductTask(loss, W, V, False)
    np.testing.assert_allclose(memory.reduce(task).HV, batches.reduce(task).HV, atol=1e-9)
    drawn = memory.draw(50, 3), batches.draw(50, 3)
    np.testing.assert_array_equal(drawn[0].X.values, drawn[1].X.values)
    np.testing.assert_array_equal(drawn[0].batch.s, drawn[1].batch.s)


class Recorder:
    """A task whose sums are the rows that it was given."""

    def __init__(self):
        self.calls = []

    def flops(self, X):
        return 1

    def __call__(self, kernels, batch, n_threads):
        self.calls.append((len(batch.r), n_threads))
        return Names([tuple(row) for row in batch.X.values])


class Names(list):
    def merge(self, other):
        return Names([*self, *other])


def test_partial_sums_are_merged_in_the_order_of_the_rows(rng):
    batch, _, _ = make_problem(rng, 50, 3, 2)
    task = Recorder()
    found = BatchesSource(split(batch, [10, 11, 30])).reduce(task)
    assert found == [tuple(row) for row in batch.X.values]
    assert task.calls == [(10, 1), (1, 1), (19, 1), (20, 1)]


@PROFILE
@given(seed=st.integers(0, 2**31))
def test_merging_sums_is_associative(seed):
    rng = np.random.default_rng(seed)
    a, b, c = (
        Sums(*rng.integers(-9, 9, 2).astype(float), *rng.integers(-9, 9, (2, 3, 3)).astype(float))
        for _ in range(3)
    )
    for one, other in zip(a.merge(b).merge(c), a.merge(b.merge(c)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert a._replace(H=None).merge(b).H is None
    np.testing.assert_array_equal(Product(a.g).merge(Product(b.g)).HV, a.g + b.g)


def test_small_tasks_run_on_one_thread(rng):
    batch, _, _ = make_problem(rng, 50, 3, 2)
    task = Recorder()
    MemorySource(batch, n_threads=7).reduce(task)
    assert task.calls == [(50, 1)]


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("equal", [True, False])
def test_counts_and_weights_of_classes(rng, equal):
    r = rng.integers(0, 4, 70_000).astype(np.int32)
    s = np.array([2.5]) if equal else rng.random(70_000)
    for codes in (r, (r > 1).astype(np.int32)):
        source = MemorySource(Batch(DenseRows(np.zeros((70_000, 1))), codes, s))
        weights = np.bincount(codes, np.broadcast_to(s, 70_000))
        np.testing.assert_array_equal(source.class_counts, np.bincount(codes))
        np.testing.assert_allclose(source.class_weights, weights)
        np.testing.assert_allclose(source.class_fractions, weights / weights.sum())
        assert source.total_weight == pytest.approx(weights.sum())


@pytest.mark.parametrize("layout", ["C", "csr32"])
def test_take_has_rows_targets_weights_and_offsets(rng, layout):
    X, r, s = make_features(rng, 60, 4, layout=layout), rng.integers(0, 2, 60), rng.random(60)
    source = MemorySource(Batch(X, r, s, rng.standard_normal((60, 2))), n_threads=3)
    rows = np.array([4, 2, 40])
    taken = source.take(rows, factors=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(taken.X.dense(), X.dense()[rows])
    np.testing.assert_array_equal(taken.batch.r, r[rows])
    np.testing.assert_allclose(taken.batch.s, s[rows] * [1, 2, 3])
    np.testing.assert_array_equal(taken.batch.o, source.batch.o[rows])
    assert taken.n_threads == 3
    equal = source.with_weights(np.full(1, 2.0))
    assert len(equal.take(rows).batch.s) == 1
    np.testing.assert_allclose(equal.take(rows, np.arange(3.0)).batch.s, [0, 2, 4])


def test_columns_keep_the_rest(rng):
    batch, _, _ = make_problem(rng, 60, 4, 2)
    some = MemorySource(batch).columns(np.array([3, 1]))
    np.testing.assert_array_equal(some.X.values, batch.X.values[:, [3, 1]])
    assert some.batch.r is batch.r and some.batch.s is batch.s


def test_moments_are_weighted(rng):
    batch, _, _ = make_problem(rng, 60, 4, 2)
    mean, deviation = MemorySource(batch).moments()
    expected = np.average(batch.X.values, axis=0, weights=batch.s)
    np.testing.assert_allclose(mean, expected)
    squares = np.average((batch.X.values - expected) ** 2, axis=0, weights=batch.s)
    np.testing.assert_allclose(deviation, np.sqrt(squares))


def test_row_norms_have_mean_1_for_standardised_columns(rng):
    batch, _, _ = make_problem(rng, 500, 4, 2)
    batch = batch._replace(X=DenseRows(batch.X.values * [1, 10, 100, 0.1] + 3), s=np.ones(1))
    norms = MemorySource(batch).row_norms
    assert norms.shape == (500,) and norms.mean() == pytest.approx(1.0)


# --- samples --------------------------------------------------------------------------------------


def make_source(rng, n=5000, K=3, **options):
    X, r = rng.standard_normal((n, 3)), rng.integers(0, K, n).astype(np.int32)
    return MemorySource(Batch(DenseRows(X), r, rng.random(n) + 0.1), **options)


@pytest.mark.parametrize("by_norm", [False, True])
def test_samples_have_about_m_rows_and_the_weight_of_each_class(rng, by_norm):
    source = make_source(rng)
    for m in (300, 1000, 3000):
        drawn = source.draw(m, 1, by_norm)
        assert abs(drawn.n_rows - m) <= 0.1 * m
        np.testing.assert_allclose(drawn.class_weights, source.class_weights)


@pytest.mark.parametrize("by_norm", [False, True])
def test_seed_decides_the_sample(rng, by_norm):
    source = make_source(rng)
    one, same, other = (source.draw(500, seed, by_norm) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.X.values, same.X.values)
    np.testing.assert_array_equal(one.batch.s, same.batch.s)
    assert not np.array_equal(one.X.values[:100], other.X.values[:100])


@pytest.mark.parametrize("m", [5000, 10**9])
def test_sample_of_all_rows_is_the_source(rng, m):
    source = make_source(rng)
    assert source.draw(m, 0) is source and source.draw(m, 0, by_norm=True) is source


@pytest.mark.parametrize("by_norm", [False, True])
def test_sums_of_samples_estimate_those_of_all_rows(rng, by_norm):
    source = make_source(rng)
    W = rng.standard_normal((3, 4))
    task = SweepTask(1, W, 1, False)
    losses = [source.draw(500, seed, by_norm).reduce(task).loss for seed in range(40)]
    assert np.mean(losses) == pytest.approx(source.reduce(task).loss, rel=0.02)


def test_rare_classes_are_drawn_densely(rng):
    n, r = 20_000, np.zeros(20_000, np.int32)
    r[:40], r[40:400] = 1, 2
    source = MemorySource(Batch(DenseRows(rng.standard_normal((n, 2))), r, np.ones(1)))
    drawn = source.draw(1000, 0)
    assert drawn.class_counts[1] == 40
    assert drawn.class_counts[2] >= MIN_CLASS_ROWS
    np.testing.assert_allclose(drawn.class_weights, source.class_weights)


def test_rows_far_from_the_others_are_drawn_by_norm(rng):
    X = rng.standard_normal((20_000, 2))
    X[[5, 9000]] = 1000.0
    r = rng.integers(0, 2, 20_000).astype(np.int32)
    source = MemorySource(Batch(DenseRows(X), r, np.ones(1)))
    for seed in range(5):
        drawn = source.draw(500, seed, by_norm=True)
        assert (drawn.X.values == 1000.0).all(axis=1).sum() == 2


def test_sample_that_misses_the_weight_of_a_class_is_all_rows(rng):
    n, s = 20_000, np.zeros(20_000)
    r = (np.arange(n) % 2).astype(np.int32)
    s[r == 0], s[777] = 1, 1
    source = MemorySource(Batch(DenseRows(rng.standard_normal((n, 2))), r, s))
    assert source.draw(200, 0) is source


# --- costs ----------------------------------------------------------------------------------------


def test_grid_depends_on_shapes_and_types_alone(rng):
    for layout in ("C", "csr32"):
        X = make_features(rng, 3000, 7, layout=layout)
        other = make_features(rng, 3000, 7, layout="F" if layout == "C" else layout)
        if layout == "C":
            assert sweep_grid(X, 3, 2) == sweep_grid(other, 3, 2)
        assert sweep_grid(X, 3, 1).block % 16 == 0
    assert sweep_grid(X, 3, 1, float32=False).float32 is False


def test_flops_grow_with_outputs_and_with_the_hessian(rng):
    X = make_features(rng, 100, 40)
    assert sweep_flops(X, 1, 1) == 2 * 100 * 40
    assert sweep_flops(X, 3, 1) == 3 * sweep_flops(X, 1, 1)
    assert sweep_flops(X, 1, 2) == 10 * sweep_flops(X, 1, 1)
