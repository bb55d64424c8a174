"""LightGBM's ranker: not linear; the score to beat in NDCG and in time. fit_ranker(X, grades, sizes) -> seconds, predict."""

from time import perf_counter

from lightgbm import LGBMRanker

NAME = "LightGBM"


def fit_ranker(X, grades, sizes, trees=100):
    begin = perf_counter()
    model = LGBMRanker(n_estimators=trees, verbose=-1).fit(X, grades, group=sizes)
    return perf_counter() - begin, model.predict
