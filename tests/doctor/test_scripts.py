"""Scripts: every mistake is found, the mended copy runs and learns what the other does not."""

import contextlib
import io
import json
import os
from pathlib import Path

import pytest

from fitune.doctor import diagnose_script
from fitune.doctor.script import Script
from fitune.values import Refusal

from .workplace import entity_rows, make_tiny_model, reviews, write_json_lines, write_table

FOLDER = Path(__file__).parent / "scripts"
ENTITIES = (FOLDER / "entities.py").read_text(encoding="utf-8")
SENTIMENT = (FOLDER / "sentiment.py").read_text(encoding="utf-8")
# What stands between the script and its first step on today's transformers, on a machine without a card.
ONLY_TO_RUN = {"FT805", "FT814", "FT819"}


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with tiny data and a tiny BERT with random weights."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("scripts")
    write_json_lines(folder / "train.json", entity_rows(160))
    write_json_lines(folder / "dev.json", entity_rows(40, 163))
    write_table(folder / "sentiment_data.csv", ("text", "label"), reviews(60))
    make_tiny_model(folder / "tiny")
    return folder


def run(source, folder):
    """Run a script in ``folder``; its globals."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        found = {"__name__": "__main__"}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(source.replace("MODEL", "tiny"), "script.py", "exec"), found)
        return found
    finally:
        os.chdir(before)


def entity_f1(ran, rows):
    """Whole entities (border and type) of a trained model, counted apart from anything in the script."""
    import torch

    hits = said = gold = 0
    model, tokenizer = ran["model"].eval(), ran["tokenizer"]
    for row in rows:
        encoded = tokenizer(row["text"], return_tensors="pt")
        with torch.no_grad():
            tags = [model.config.id2label[int(i)] for i in model(**encoded).logits[0].argmax(-1)]
        found, start, kind = set(), None, None
        for index, tag in enumerate([*tags[1:-1], "O"]):
            if start is not None and tag != f"I-{kind}":
                found.add((start, index - 1, kind))
                start = None
            if tag.startswith("B-"):
                start, kind = index, tag[2:]
        right = {(s, e, label) for label, spans in row["label"].items() for s, e in spans}
        hits, said, gold = hits + len(found & right), said + len(found), gold + len(right)
    return 2 * hits / max(1, said + gold)


def codes(source, folder=None):
    return {finding.code for finding in diagnose_script(source, "s.py", folder=folder).findings}


def test_every_mistake_of_the_entity_script_is_found(workplace):
    wanted = [
        "FT510",
        "FT801",
        "FT802",
        "FT803",
        "FT804",
        "FT805",
        "FT806",
        "FT811",
        "FT812",
        "FT813",
        "FT814",
        "FT816",
        "FT819",
    ]
    assert codes(ENTITIES, workplace) == set(wanted)


def test_every_mistake_of_the_text_script_is_found(workplace):
    wanted = ["FT510", "FT804", "FT805", "FT808", "FT810", "FT811", "FT812", "FT813", "FT814", "FT815", "FT817"]
    assert codes(SENTIMENT, workplace) == set(wanted)


def test_each_finding_names_its_line(workplace):
    for finding in diagnose_script(ENTITIES, "s.py", folder=workplace).findings:
        line = int(finding.evidence[0].split(":")[1])
        assert ENTITIES.split("\n")[line - 1].strip()[:60] in finding.evidence[0]


def test_the_mended_entity_script_runs_and_beats_the_other(workplace):
    mended = diagnose_script(ENTITIES, "s.py", folder=workplace).mended
    assert mended is not None
    assert "# 省显存" in mended, "comments are kept"
    script = Script.parse(ENTITIES, "s.py", workplace)
    from fitune.doctor import all_rules

    edits = [
        edit
        for rule in all_rules()
        if rule.code in ONLY_TO_RUN and hasattr(rule.module, "check")
        for seen in rule.module.check(script)
        for edit in seen.edits
    ]
    dev = entity_rows(40, 163)
    other = entity_f1(run(script.mend(edits).replace("./output", "./other"), workplace), dev)
    ran = run(mended, workplace)
    assert entity_f1(ran, dev) > other + 0.2
    assert (workplace / "output").is_dir()
    assert "eval_f1" in ran["trainer"].evaluate()


def test_the_mended_text_script_runs(workplace):
    mended = diagnose_script(SENTIMENT, "s.py", folder=workplace).mended
    ran = run(mended.replace("num_train_epochs=3", "num_train_epochs=1"), workplace)
    assert (workplace / "final-model" / "tokenizer.json").exists() or (workplace / "final-model" / "vocab.txt").exists()
    assert "eval_accuracy" in ran["trainer"].evaluate()


def test_mending_is_done_once(workplace):
    mended = diagnose_script(ENTITIES, "s.py", folder=workplace).mended
    assert codes(mended, workplace) <= {"FT510", "FT816"}, "what is left to the user"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("labels = [-100 if tag == 'O' else label2id[tag] for tag in tags]", "FT801"),
        ("args = TrainingArguments('out', no_cuda=True)", "FT805"),
        ("from transformers import AdamW", "FT828"),
        ("from datasets import load_metric", "FT828"),
        ("train = rows[:800]\ndev = rows[800:]", "FT809"),
        ("train, dev = train_test_split(rows, shuffle=False)", "FT809"),
        ("dataset = load_dataset('clue', 'cluener')", "FT194"),
        ("args = TrainingArguments('out', metric_for_best_model='f1')\nTrainer(model, args)", "FT807"),
        ("tokenizer(text, padding='max_length')", "FT804"),
        ("score = f1_score(gold, said, average='binary')", "FT808"),
        ("model = BertModel.from_pretrained('x', use_auth_token=True)", "FT805"),
    ],
)
def test_a_single_mistake_is_found(line, code):
    assert code in codes(line + "\n")


def test_a_mention_level_is_looped_over(tmp_path):
    row = {"text": "叶老桂说", "label": {"name": {"叶老桂": [[0, 2]]}}}
    (tmp_path / "a.json").write_text(json.dumps(row, ensure_ascii=False), encoding="utf-8")
    loops = "for kind, spans in row['label'].items():\n    for start, end in spans:\n        tag(text[start:end])\n"
    source = "rows = read('a.json')\n" + loops
    diagnosis = diagnose_script(source, "s.py", folder=tmp_path)
    assert {finding.code for finding in diagnosis.findings} == {"FT821", "FT802"}
    assert "for start, end in [span for spans in spans.values() for span in spans]" in diagnosis.mended
    assert "text[start:end + 1]" in diagnosis.mended


def test_broken_python_is_refused_with_its_line():
    with pytest.raises(Refusal, match=r"s\.py:2"):
        diagnose_script("x = 1\nif True\n", "s.py")


def test_a_script_is_never_run(tmp_path):
    diagnose_script(f"open({str(tmp_path / 'made')!r}, 'w')\n")
    assert not (tmp_path / "made").exists()


def mistakes():
    text = (Path(__file__).parent / "scripts" / "mistakes.txt").read_text(encoding="utf-8")
    for block in text.split("=== ")[1:]:
        head, script = block.split("\n", 1)
        name, code, line = head.split(" | ", 2)
        yield pytest.param(script, code, line, id=name)


@pytest.mark.parametrize(("script", "code", "line"), mistakes())
def test_a_mistake_is_found_at_its_line_and_the_mended_copy_is_free_of_it(script, code, line, tmp_path):
    row = '{"text": "浙商银行企业信贷部叶老桂博士", "label": {"name": {"叶老桂": [[9, 11]]}}}\n'
    for name in ("train.json", "dev.json"):
        (tmp_path / name).write_text(row * 8, encoding="utf-8")
    found = diagnose_script(script, "t.py", folder=tmp_path)
    assert any(f.code == code and line in f.evidence[0] for f in found.findings), found.findings
    assert {f.code for f in found.findings if f.severity != "note"} <= {code}
    if found.mended is not None:
        again = diagnose_script(found.mended, "t.py", folder=tmp_path)
        assert all(f.code != code for f in again.findings)
        assert again.mended is None
