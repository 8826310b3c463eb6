import json
import string
import time

import pytest

from fitune.data.checking import KINDS, Check, check, leaked, repair, unlabelled_repeats
from fitune.data.checking.entities import clashes
from fitune.data.reading import read
from fitune.data.rows import Format, Rows, Skipped, StrayTag
from fitune.messages import set_language
from fitune.values import Example, Source, Span
from tests.data.small_encoders import SMALL, word_piece, word_piece_vocabulary


def rows_of(examples, *, name="train.jsonl", multi_label=False, task="classification", **more):
    placed = [
        Example(e.text, e.spans, e.labels, e.text_pair, Source(name, number)) for number, e in enumerate(examples, 1)
    ]
    labels = {label for e in examples for label in e.labels or ()} | {s.label for e in examples for s in e.spans or ()}
    return Rows(placed, task, multi_label, tuple(sorted(labels)), Format(name="jsonl", task=task), **more)


def labelled(text, *labels, pair=None):
    return Example(text, labels=labels, text_pair=pair)


def entities(text, *spans):
    return Example(text, tuple(Span(*span) for span in spans))


GOOD = [labelled(f"第{n}条很好", "好") for n in range(6)] + [labelled(f"第{n}条很差", "差") for n in range(6)]
GOOD.insert(0, GOOD.pop())


def codes(result):
    return {finding.code for finding in result.findings}


def only(result, code):
    (found,) = result.found(code)
    return found


def test_nothing_wrong_nothing_found():
    result = check({"train": rows_of(GOOD)})
    assert result.findings == ()
    split = result.splits["train"]
    assert (split.rows, split.different_texts, split.duplicates, split.labels) == (12, 12, 0, {"好": 6, "差": 6})
    assert split.lengths.longest == 5
    assert sum(split.lengths.counts) == 12
    assert Check.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_duplicates_contradictions_and_leaks():
    train = rows_of([*GOOD, GOOD[3], labelled(" " + GOOD[3].text, *GOOD[3].labels), labelled(GOOD[2].text, "差")])
    test = rows_of([GOOD[5], GOOD[5], labelled("新的", "好")], name="test.jsonl")
    result = check({"train": train, "test": test})
    train_repeats, test_repeats = result.found("FT101")
    assert (train_repeats.count, test_repeats.count) == (2, 1)
    assert train_repeats.evidence[0].startswith("train.jsonl:13: ")
    assert "(line 4)" in train_repeats.evidence[0]
    contradiction = only(result, "FT102")
    assert contradiction.count == 1
    assert "好 / 差" in contradiction.evidence[0]
    leak = only(result, "FT103")
    assert leak.count == 1
    assert leak.evidence[0].startswith("test.jsonl:1: ")
    assert "(train.jsonl:6)" in leak.evidence[0]
    assert leaked(test.examples, train.examples) == [True, True, False]
    assert result.splits["train"].duplicates == 3


def test_pairs_are_equal_only_when_both_texts_are():
    rows = rows_of([*GOOD, labelled("甲", "好", pair="乙"), labelled("甲", "差", pair="丙"), labelled("甲", "差")])
    assert codes(check({"train": rows})) == set()


def test_rows_that_look_odd():
    rows = rows_of(
        [*GOOD, labelled("\ufeff头", "好"), labelled(" \u3000", "差"), labelled("坏\ufffd", "差"), Example("没有标签")],
        skipped=[Skipped(Source("train.jsonl", 99), "no text")],
        notes=["something was converted (3)"],
        stray_tags=[StrayTag(Source("train.jsonl", 7), "O", "M-ORG"), StrayTag(Source("train.jsonl", 8), "B-ORG", "")],
    )
    result = check({"train": rows})
    assert codes(result) == {"FT109", "FT111", "FT114", "FT115", "FT117", "FT118", "FT119"}
    assert only(result, "FT109").evidence == ("train.jsonl:7: O -> M-ORG", "train.jsonl:8: B-ORG -> (end)")
    assert only(result, "FT114").evidence == ("train.jsonl:99: no text",)
    assert only(result, "FT111").evidence[0].startswith("train.jsonl:14: ")


def test_classes():
    one = check({"train": rows_of(GOOD), "dev": rows_of([labelled("a", "好"), labelled("b", "好")], name="dev")})
    assert only(one, "FT107").severity == "error"
    unseen = check({"train": rows_of(GOOD), "dev": rows_of([labelled("a", "好"), labelled("b", "中")], name="dev")})
    assert only(unseen, "FT106").evidence == ("dev:2: 中",)
    rare = check({"train": rows_of([*GOOD, labelled("c", "罕见"), labelled("d", "罕 见")])})
    assert codes(rare) == {"FT113", "FT121"}
    lopsided = check({"train": rows_of([labelled(f"t{n}", "ab"[n % 20 == 7]) for n in range(100)])})
    assert codes(lopsided) == {"FT112"}
    by_class = check({"train": rows_of([labelled(f"t{n}", "ab"[n > 60]) for n in range(120)])})
    assert codes(by_class) == {"FT116"}


def test_entities():
    text = "北京大学在北京，北京很大，bigbang bang"
    rows = rows_of(
        [
            entities(text, (0, 4, "ORG"), (0, 2, "LOC"), (5, 7, "LOC"), (21, 25, "X")),
            entities("甲乙丙丁", (0, 3, "ORG"), (2, 4, "LOC")),
            entities("甲乙", (0, 2, "ORG"), (0, 2, "LOC")),
            entities("甲 乙", (0, 2, "ORG")),
        ],
        task="ner",
    )
    result = check({"train": rows})
    assert codes(result) == {"FT104", "FT105", "FT108", "FT110", "FT113"}
    assert only(result, "FT105").count == 1
    assert only(result, "FT104").count == 2
    assert "ORG [0, 3) '甲乙丙'" in only(result, "FT104").evidence[0]
    assert "train.jsonl:2: " in only(result, "FT104").evidence[0]
    assert list(unlabelled_repeats(rows.examples[0])) == [(8, 10, "LOC")]
    assert only(result, "FT110").evidence[0].startswith("train.jsonl:4: ORG [0, 2)")


def test_each_clash_is_counted_once():
    spans = (Span(0, 9, "A"), Span(1, 3, "B"), Span(2, 5, "C"), Span(8, 10, "D"), Span(12, 13, "E"))
    assert [(inner, span.label) for inner, span, _other in clashes(spans)] == [(True, "B"), (True, "C"), (False, "D")]


def test_with_an_encoder():
    encoder = word_piece(word_piece_vocabulary(), lowercase=True)
    rows = rows_of(
        [
            entities("我在“北京”喝茶", (3, 5, "LOC")),
            entities("我在龘城喝iphone茶", (2, 4, "LOC"), (5, 8, "X"), (8, 11, "X")),
            entities("我们" * 40, (0, 2, "PER")),
        ],
        task="ner",
    )
    result = check({"train": rows}, encoder, max_length=32)
    assert codes(result) == {"FT210", "FT211", "FT212", "FT214", "FT108", "FT113"}
    tokens = result.splits["train"].tokens
    assert tokens.unknown_tokens == 4  # two quotes and two characters
    assert tokens.entities_with_unknown == {"LOC": 1}
    assert tokens.inexact_entities == {"cut": 1, "lost": 1}
    assert tokens.labelled_share_in_windows == 1.0
    assert tokens.long_texts == 1
    assert only(result, "FT210").fixes[0].settings == {"normalize_quotes": True}
    assert "喝[iph]one" in only(result, "FT212").evidence[0]
    cased = word_piece(word_piece_vocabulary(), lowercase=False)
    found = check({"train": rows_of([labelled("我们喝茶", "差"), labelled("iPhone Pro", "好")])}, cased)
    assert {"lowercase": True} in [fix.settings for fix in only(found, "FT210").fixes]
    assert found.splits["train"].tokens.unknown_share_by_label["好"] > 0


@pytest.mark.parametrize("name", SMALL)
def test_check_takes_every_encoder(name):
    rows = rows_of([labelled("甲\u200b 乙", "好", pair="iPhone 😀" * 20), labelled("", "差"), *GOOD])
    tokens = check({"train": rows}, SMALL[name], max_length=24).splits["train"].tokens
    assert tokens.labelled_share_in_windows == 1.0
    assert tokens.characters == sum(len(e.text) + len(e.text_pair or "") for e in rows.examples)


def test_repair_does_what_is_safe_and_says_so():
    rows = rows_of(
        [
            entities("\ufeff甲\ufeff乙 丙", (1, 5, "A"), (5, 6, "B"), (4, 5, "C")),
            entities("甲乙 丙", (0, 2, "A"), (3, 4, "B")),
            entities("甲乙 丙", (0, 2, "B")),
            entities("  "),
            entities("丁", (0, 1, "A"), (0, 1, "A")),
        ],
        task="ner",
    )
    before = list(rows.examples)
    repaired, changes = repair(rows)
    assert rows.examples == before
    assert [(e.text, e.spans) for e in repaired.examples] == [
        ("甲乙 丙", (Span(0, 2, "A"), Span(3, 4, "B"))),
        ("甲乙 丙", (Span(0, 2, "B"),)),  # a contradiction is for the user to decide
        ("丁", (Span(0, 1, "A"),)),
    ]
    assert [change.code for change in changes] == ["FT115", "FT110", "FT101", "FT111", "FT110"]
    assert str(changes[2].source) == "train.jsonl:2"
    assert repair(repaired) == (repaired, [])
    safe = {code for code, kind in KINDS.items() if kind.safety == "safe"}
    assert not {f.code for f in check({"train": repaired}).findings} & safe


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_code_has_title_why_and_fix(language):
    from fitune.messages import _

    set_language(language)
    try:
        for code, kind in KINDS.items():
            assert kind.code == code
            for text in (kind.title, kind.why, kind.fix):
                shown = _(text)
                assert shown
                if language == "zh":
                    assert text == "{split}: {note}" or any("一" <= c <= "鿿" for c in shown), text
                places = {name for _l, name, _f, _c in string.Formatter().parse(text) if name}
                assert places == {name for _l, name, _f, _c in string.Formatter().parse(shown) if name}, text
        result = check({"train": rows_of([*GOOD, GOOD[0]])})
        assert ("完全相同" in result.findings[0].title) == (language == "zh")
    finally:
        set_language("en")


def test_time_is_linear():
    """Four times the rows, not more than ten times the time; texts that invite quadratic work."""

    def seconds(count):
        examples = [entities("我们在北京" * 20 + str(n % (count // 2)), (3, 5, "LOC")) for n in range(count)]
        started = time.process_time()
        check({"train": rows_of(examples, task="ner"), "dev": rows_of(examples, task="ner")})
        return time.process_time() - started

    seconds(100)
    assert seconds(4000) < 10 * max(seconds(1000), 0.01)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_file_to_learn_from_without_labels_is_an_error(language, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("编号,评论\n1,很好吃\n2,太慢了\n", "utf-8")
    set_language(language)
    try:
        for splits in ({"train": read(path)}, {"train": rows_of(GOOD), "dev": read(path)}):
            found = only(check(splits), "FT131")
            assert (found.severity, found.count) == ("error", 2)
            assert "编号" in found.title
            assert "--label-column" in found.fixes[0].text
            assert str(path) in found.fixes[0].text
            assert found.evidence[0] == f"{path}:2: 很好吃"
    finally:
        set_language("en")
    assert only(check({"train": rows_of([entities("没有实体"), entities("也没有")], task="ner")}), "FT131").count == 2
    assert "FT131" not in codes(check({"train": rows_of(GOOD), "dev": rows_of([labelled("甲", "好"), Example("乙")])}))
