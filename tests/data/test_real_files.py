"""Public data sets, read whole. They are not part of the repository: set FITUNE_DATA to the folder that holds them."""

import os
from pathlib import Path

import pytest

from fitune.data import read, stream

FOLDER = Path(os.environ.get("FITUNE_DATA", "/nonexistent"))
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="FITUNE_DATA names no folder with the public data sets")

# file, format, examples, skipped, labels
CASES = [
    ("cluener2020/train.json", "cluener", 10748, 0, 10),
    ("cluener2020/dev.json", "cluener", 1343, 0, 10),
    ("cluener2020/test.json", "json", 1345, 0, 0),
    ("resume_ner/train.char.bmes", "columns", 3821, 0, 8),
    ("resume_ner/dev.char.bmes", "columns", 463, 0, 8),
    ("resume_ner/test.char.bmes", "columns", 477, 0, 8),
    ("weibo_ner/weiboNER_2nd_conll.train", "columns", 1350, 0, 8),
    ("weibo_ner/weiboNER_2nd_conll.dev", "columns", 270, 0, 8),
    ("weibo_ner/weiboNER_2nd_conll.test", "columns", 270, 0, 8),
    ("weibo_ner/weiboNER.conll.train", "columns", 1348, 2, 7),
    ("weibo_ner/weiboNER.conll.dev", "columns", 268, 2, 7),
    ("weibo_ner/weiboNER.conll.test", "columns", 266, 4, 7),
    ("msra_ner_uer/train_small.tsv", "tag-cells", 1000, 0, 3),
    ("msra_ner_uer/dev.tsv", "tag-cells", 2318, 0, 3),
    ("msra_ner_uer/test.tsv", "tag-cells", 4636, 0, 3),
    ("chnsenticorp/train.tsv", "tsv", 9600, 0, 2),
    ("chnsenticorp/dev.tsv", "tsv", 1200, 0, 2),
    ("chnsenticorp/test.tsv", "tsv", 1200, 0, 2),
    ("waimai_10k/waimai_10k.csv", "csv", 11987, 0, 2),
    ("thucnews_titles/dev.txt", "tsv", 10000, 0, 10),
    ("thucnews_titles/test.txt", "tsv", 10000, 0, 10),
]


@pytest.mark.parametrize(("name", "format", "examples", "skipped", "labels"), CASES)
def test_counts(name, format, examples, skipped, labels):
    rows = read(FOLDER / name)
    found = rows.format.name, len(rows.examples), len(rows.skipped), len(rows.labels)
    assert found == (format, examples, skipped, labels)
    assert rows.rows_in_file == examples + skipped + rows.merged
    assert sum(1 for _example in stream(FOLDER / name)) == examples
