"""What is known of public data sets, found again. Skipped where FITUNE_DATA names no folder with them."""

import time

import numpy as np
import pytest

from fitune.data import align, check, read, split, split_dev
from fitune.data.division import text_key
from tests.data.small_encoders import bert_base_chinese, data_folder


def rows(**files):
    folder = data_folder()
    found = {split: folder / name for split, name in files.items()}
    if not all(path.exists() for path in found.values()):
        pytest.skip(f"no {found}")
    return {split: read(path) for split, path in found.items()}


def counts(result, code):
    return [f.count for f in result.findings if f.code == code]


def test_cluener():
    result = check(rows(train="cluener2020/train.json", dev="cluener2020/dev.json"), bert_base_chinese())
    nested = result.found("FT105")
    assert [f.count for f in nested] == [2]  # both inside one entity of one row
    assert all("train.json:1507: " in line for line in nested[0].evidence)
    assert sum(counts(result, "FT108")) == 194
    tokens = result.splits["train"].tokens
    assert sum(tokens.entities_with_unknown.values()) / tokens.entities == pytest.approx(0.0065, abs=0.0001)
    assert tokens.labelled_share_in_windows == 1.0


def test_cluener_without_lower_casing():
    texts = [e.text for e in rows(train="cluener2020/train.json")["train"].examples]
    encoder = bert_base_chinese(lowercase=False)
    ids = align(texts, encoder, refine=False).encoded.ids
    assert np.mean(ids == encoder.unk_id) == pytest.approx(0.0143, abs=0.0001)


def test_resume():
    result = check(rows(train="resume_ner/train.char.bmes", test="resume_ner/test.char.bmes"))
    assert counts(result, "FT103") == [4]


def test_resume_has_two_sentences_cut_inside_an_entity():
    stray = rows(train="resume_ner/train.char.bmes")["train"].stray_tags
    assert [(tag.before, tag.after) for tag in stray] == [("M-ORG", ""), ("", "M-ORG")] * 2


def test_weibo():
    result = check(
        rows(train="weibo_ner/weiboNER_2nd_conll.train", test="weibo_ner/weiboNER_2nd_conll.test"),
    )
    # 36 when the position digits behind the characters count as text, 38 when they are taken off.
    assert counts(result, "FT103") == [38]
    assert "of 262 different texts" in result.found("FT103")[0].title


def test_chnsenticorp():
    result = check(rows(train="chnsenticorp/train.tsv", test="chnsenticorp/test.tsv"))
    assert result.splits["train"].duplicates == 1351
    assert counts(result, "FT103") == [330]
    assert "of 1178 different texts" in result.found("FT103")[0].title


def test_waimai():
    whole = rows(train="waimai_10k/waimai_10k.csv")["train"]
    result = check({"train": whole})
    assert counts(result, "FT102") == [7]
    assert counts(result, "FT116") == [11987]
    train, dev = split_dev(whole.examples, 0.1, 42)
    assert len(dev) == 1199
    assert {text_key(e) for e in train}.isdisjoint(text_key(e) for e in dev)
    assert sum(e.labels == ("1",) for e in dev) == pytest.approx(400, abs=2)


def test_reading_aligning_and_windows_are_fast():
    """At least 200,000 characters per CPU-second, the tokenizer included."""
    folder = data_folder()
    encoder = bert_base_chinese()
    started = time.process_time()
    examples = read(folder / "chnsenticorp" / "dev.tsv").examples
    split(examples, encoder, max_length=128)
    assert sum(len(e.text) for e in examples) / (time.process_time() - started) > 200_000
