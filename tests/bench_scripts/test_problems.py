"""Data sets of the benchmarks: files of each format, and what is said if they are missing."""

import gzip
from pathlib import Path

import numpy as np
import problems
import pytest

LOADERS = (problems.covtype, problems.fashion_mnist, problems.newsgroups)


@pytest.fixture(autouse=True)
def without_cache():
    yield
    for loader in (*LOADERS, problems._newsgroups_vocabulary):
        loader.cache_clear()


def test_missing_data_raise(monkeypatch):
    monkeypatch.delenv("FASTDISC_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="FASTDISC_DATA"):
        problems.data_folder()
    monkeypatch.setenv("FASTDISC_DATA", str(Path(problems.__file__).parent))
    with pytest.raises(FileNotFoundError, match="has no covtype"):
        problems.covtype()


def test_texts_tables_and_images_are_read(tmp_path, monkeypatch):
    texts = "Category\tText\nd\tstring\nclass\t\n\n" + "b\tone two\na\ttwo one\tone\n"
    header = bytes(16)
    for name, content in {
        "20newsgroups/20newsgroups-train.tab.gz": texts.encode(),
        "20newsgroups/20newsgroups-test.tab.gz": texts.encode(),
        "covtype/covtype.csv.gz": b"p,q,class\n1,2,7\n3,4,1\n",
        "fashion_mnist/t10k-labels-idx1-ubyte.gz": header[:8] + bytes([3, 9]),
        "fashion_mnist/t10k-images-idx3-ubyte.gz": header + bytes(range(8)),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(content))
    monkeypatch.setenv("FASTDISC_DATA", str(tmp_path))
    X, y = problems.newsgroups("test")
    assert X.shape == (2, 2) and X.indices.dtype == np.int32 and y.tolist() == [1, 0]
    X, y = problems.covtype()
    assert X.tolist() == [[1, 2], [3, 4]] and y.tolist() == [6, 0]
    X, y = problems.fashion_mnist("test")
    assert X.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]] and y.tolist() == [3, 9]
