import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitune.messages import set_language
from fitune.runs import (
    Confusion,
    DataFile,
    ErrorCase,
    Evaluation,
    Histogram,
    LabelScores,
    Run,
    SplitEvaluation,
    render_report,
    write_report,
)
from fitune.runs.charts import line_chart, thinned
from fitune.runs.report import charts, marked, predicted_beside_measured
from fitune.values import Estimate, Event, Finding, Fit, Job, Plan, Span

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects tags, attributes and text."""

    VOID = {"meta", "br", "img", "link", "path", "circle", "polyline"}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def ner_evaluation(text: str = "张三在北京大学读书", **changes: object) -> Evaluation:
    split = SplitEvaluation(
        rows=10,
        metrics={"f1": 0.7512, "loss": 0.25},
        metrics_without_seen={"f1": 0.7},
        rows_seen=2,
        per_label=(LabelScores(label="nr", precision=0.5, recall=1, f1=2 / 3, gold=4, predicted=8, correct=4),),
        confusion=Confusion(labels=("nr", "ns", ""), counts=((3, 1, 0), (0, 5, 2), (1, 0, 0))),
        errors=(
            ErrorCase(
                text=text,
                gold_spans=(Span(0, 2, "nr"), Span(3, 7, "nt")),
                predicted_spans=(Span(0, 2, "nr"), Span(3, 5, "ns")),
                source="dev.json:7",
                loss=1.5,
            ),
        ),
        errors_total=1,
        coverage=1.0,
    )
    fields: dict[str, object] = {
        "task": "ner",
        "labels": ("nr", "ns"),
        "metric": "f1",
        "splits": {"dev": split},
        "baseline": {"dev": {"f1": 0.501}},
        "data": (DataFile(split="train", path="train.json", rows=90, sha256="ab" * 32, format="spans"),),
        "findings": (Finding(code="FT101", severity="warning", title="duplicates", evidence=("train.json:3",)),),
        "lengths_tokens": Histogram(edges=(0, 10, 20), counts=(3, 9)),
        "versions": {"torch": "2.13.0"},
        "measured_seconds": 12.5,
        "measured_peak_bytes": 2**30,
    }
    return Evaluation.model_validate({**fields, **changes})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    job = Job(train="train.json", epochs=2)
    estimate = Estimate(predicted_peak_bytes=3 * 2**29, predicted_seconds=10.0)
    run = Run.create(tmp_path / "train-1", job, Plan(job=job, card=None, fit=Fit(), fidelity=0, estimate=estimate))
    run.append(Event(kind="started", step=0, time=1.0e9))
    for n in range(1, 40):
        run.append(Event(kind="step", step=n, time=1e9 + n, data={"loss": 1 / n, "learning_rate": 1e-5 * n}))
    run.append(Event(kind="evaluation", step=39, time=1e9, data={"split": "dev", "metrics": {"f1": 0.7, "loss": 0.3}}))
    run.append(Event(kind="warning", step=39, time=1e9, data={"code": "FT501", "text": "no gain"}))
    run.append(Event(kind="stopped", step=39, time=1e9 + 99, data={"reason": "early_stop", "exit_code": 0}))
    return run


def test_the_page_says_what_the_run_says(run: Run) -> None:
    run.write_evaluation(ner_evaluation())
    page = Page(write_report(run).read_text(encoding="utf-8"))
    words = " ".join(page.words)
    for wanted in (
        "75.12",
        "50.10",
        "dev.json:7",
        "FT101",
        "duplicates",
        "ab" * 32,
        "early_stop",
        "1.50 GiB",
        "1.00 GiB",
        "torch 2.13.0",
        "FT501",
        "66.67",
        "bert-base-chinese",
    ):
        assert wanted in words, wanted
    assert page.tags.count("svg") == 4
    assert page.tags.count("mark") == 4
    assert ("class", "wrong") in page.attributes


def test_no_request_leaves_the_page(run: Run) -> None:
    run.write_evaluation(ner_evaluation())
    text = render_report(run)
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert not [a for a in page.attributes if a[0] in ("src", "href", "srcset", "action") or a[0].startswith("on")]
    assert not re.search(r"https?:|url\(|@import", text)
    assert "default-src 'none'" in text


def test_users_text_is_text(run: Run, tmp_path: Path) -> None:
    split = SplitEvaluation(
        rows=1,
        metrics={EVIL: 0.5},
        per_label=(LabelScores(label=EVIL, precision=0, recall=0, f1=0, gold=1, predicted=0, correct=0),),
        confusion=Confusion(labels=(EVIL, ""), counts=((0, 1), (0, 0))),
        errors=(
            ErrorCase(text=EVIL, text_pair=EVIL, gold_labels=(EVIL,), predicted_labels=(EVIL,), source=EVIL),
            ErrorCase(text=EVIL, gold_spans=(Span(0, 5, EVIL),), predicted_spans=(Span(1, 9, EVIL),), source=EVIL),
        ),
    )
    run.write_job(Job(train=EVIL, model=EVIL, class_weights={EVIL: 1.0}))
    run.append(Event(kind="warning", step=1, time=1.0, data={EVIL: EVIL}))
    run.append(Event(kind="evaluation", step=1, time=1.0, data={"split": "dev", "metrics": {EVIL: 0.1}}))
    finding = Finding(code="FT101", severity="error", title=EVIL, evidence=(EVIL,))
    for task in ("ner", "classification"):
        run.write_evaluation(
            ner_evaluation(
                task=task,
                metric=EVIL,
                labels=(EVIL,),
                splits={"dev": split},
                findings=(finding,),
                data=(DataFile(split="dev", path=EVIL, rows=1, sha256=EVIL, format=EVIL, note=EVIL),),
                versions={EVIL: EVIL},
                thresholds={EVIL: 0.5},
                device=EVIL,
            )
        )
        page = Page(render_report(run))
        assert not {"script", "img"} & set(page.tags)
        assert not [name for name, _value in page.attributes if name.startswith("on")]
        assert EVIL in " ".join(page.words)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_both_languages(run: Run, language: str) -> None:
    run.write_evaluation(ner_evaluation())
    set_language(language)  # type: ignore[arg-type]
    try:
        text = render_report(run)
    finally:
        set_language("en")
    assert f'lang="{ {"en": "en", "zh": "zh-CN"}[language] }"' in text
    assert ("混淆矩阵" in text) == (language == "zh")
    assert ("Confusion matrix" in text) == (language == "en")


@pytest.mark.parametrize(("language", "words"), [("en", "split off from"), ("zh", "从训练文件中划出")])
def test_a_split_is_told_in_the_language_of_the_reader(run: Run, language: str, words: str) -> None:
    file = DataFile(split="dev", path="train.json", rows=9, sha256="ab", split_off=True)
    run.write_evaluation(ner_evaluation(data=(file,)))
    set_language(language)  # type: ignore[arg-type]
    try:
        assert words in render_report(run)
    finally:
        set_language("en")


def test_curves_of_scores_have_the_units_of_the_tables(run: Run) -> None:
    run.append(Event(kind="evaluation", step=40, time=1e9, data={"split": "dev", "metrics": {"f1": 0.8, "loss": 0.2}}))
    pictures = dict(charts(run.events()))
    scores = next(svg for title, svg in pictures.items() if "per cent" in title and "f1" in title)
    assert "<title>f1 80 (40)</title>" in scores
    assert ">72<" in scores, "a tick of the axis"
    assert ">0.4<" in next(svg for title, svg in pictures.items() if "Loss" in title)


def test_predicted_and_measured_memory_leave_out_the_same() -> None:
    estimate = Estimate(predicted_peak_bytes=3 * 2**29, predicted_seconds=10.0)
    (what, predicted, measured), _time = predicted_beside_measured(estimate, 2**30, 9.0, 2**29)
    assert (predicted, measured) == ("1.00 GiB", "1.00 GiB")
    assert "without the 0.50 GiB" in what
    assert predicted_beside_measured(estimate, 2**30, 9.0)[0] == ("peak memory", "1.50 GiB", "1.00 GiB")


def test_a_run_that_has_just_begun_has_a_page(tmp_path: Path) -> None:
    page = Page(render_report(Run.create(tmp_path / "x", Job(train="a"))))
    assert "not been evaluated yet" in " ".join(page.words)


spans = st.lists(
    st.tuples(st.integers(0, 999), st.integers(1, 50), st.sampled_from("AB")).map(
        lambda t: Span(t[0], min(1000, t[0] + t[1]), t[2])
    ),
    max_size=8,
)


@given(gold=spans, predicted=spans, length=st.sampled_from([1000, 1050]))
def test_marks_keep_every_character_of_every_span(gold: list[Span], predicted: list[Span], length: int) -> None:
    text = "".join(chr(0x4E00 + n) for n in range(length))
    pieces = marked(text, gold, predicted)
    shown = "".join(piece.text for piece in pieces)
    assert all(text[s.start : s.end] in shown.replace(" … ", "") for s in [*gold, *predicted])
    for s in gold:
        under = "".join(p.text for p in pieces if s.label in p.labels)
        assert set(text[s.start : s.end]) <= set(under)
    right = set(predicted)
    assert any(p.wrong for p in pieces) == any(s not in right for s in gold)


def test_a_short_text_is_shown_whole() -> None:
    assert "".join(p.text for p in marked("甲" * 400, [Span(1, 2, "X")])) == "甲" * 400


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(allow_nan=True)), max_size=30))
def test_any_curve_is_drawn_or_left_out(points: list[tuple[float, float]]) -> None:
    svg = line_chart([("loss", points)], label="loss")
    assert "nan" not in svg
    assert "inf" not in svg


def test_thinning_keeps_the_mean() -> None:
    points = [(float(n), float(n % 7)) for n in range(800)]
    few = thinned(points)
    assert len(few) == 400
    assert sum(y for _x, y in few) / 400 == pytest.approx(sum(y for _x, y in points) / 800)
