"""Prediction in several processes: the same as in one, in order, within bounds, and nothing left behind."""

import math
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fitune import Predictor
from fitune.predicting import chunks, predict_with_workers, workers
from fitune.predicting.predictor import refuse_workers_on_cuda
from fitune.values import Example, Prediction, Refusal, Source, Span
from tests.predicting import stand_in
from tests.predicting.models import make_model, texts


@pytest.fixture
def quick(monkeypatch):
    """Stand-ins for the workers, and small chunks."""
    monkeypatch.setattr(workers, "_START", stand_in.START.format("work"))
    monkeypatch.setattr(workers, "STREAMED_EXAMPLES", 4)


def rows(*words, file="in.jsonl"):
    return [Example(word, source=Source(file, line)) for line, word in enumerate(words, 1)]


def children():
    """Workers of this process; other tests leave a browser or a server behind."""
    return [
        p
        for p in psutil.Process().children(recursive=True)
        if p.status() != psutil.STATUS_ZOMBIE
        and any("predicting" in word and ("working" in word or "stand_in" in word) for word in p.cmdline())
    ]


# -- against one process -------------------------------------------------------------------------------------------


def test_two_workers_give_the_bits_of_one_process(tmp_path, monkeypatch):
    # As many threads in each as here: sums of other thread counts may differ in the last bit.
    monkeypatch.setattr(workers, "cores_here", lambda: 2 * torch.get_num_threads())
    asked = [Example(text, source=Source("a.txt", n)) for n, text in enumerate(texts(60) * 20, 1)]
    predictor = Predictor(make_model(tmp_path))
    alone = list(predictor.stream(asked))
    assert list(predictor.stream(asked, workers=2)) == alone
    assert len(alone) > 2 * chunks.STREAMED_EXAMPLES
    assert not children()


def test_a_refusal_names_the_row_as_in_one_process(tmp_path):
    model = make_model(tmp_path, task="classification", pairs=True)
    wrong = [Example("一", text_pair="二", source=Source("a.csv", 2)), Example("三", source=Source("a.csv", 3))]
    with pytest.raises(Refusal) as one:
        list(Predictor(model).stream(wrong))
    with pytest.raises(Refusal) as two:
        list(predict_with_workers(model, wrong, workers=2))
    assert vars(one.value).items() <= vars(two.value).items()
    assert two.value.where == "a.csv:3"
    assert two.value.exit_code == one.value.exit_code == 2


# -- with stand-ins for the workers --------------------------------------------------------------------------------


def test_order_is_kept_whoever_answers(quick):
    asked = rows(*(f"{n}" for n in range(400)), "print")
    found = list(predict_with_workers("run", asked, workers=3))
    assert [(p.text, p.source) for p in found] == [(e.text, e.source) for e in asked]
    assert [p.spans[0].score for p in found] == [len(e.text) / 3 for e in asked]
    # One that starts first may do it all.
    assert 1 <= len({p.spans[0].label for p in found}) <= 3
    assert not children()


def test_no_more_processes_than_chunks_and_none_for_nothing(quick):
    found = predict_with_workers("run", rows("a", "b"), workers=8)
    assert next(found).text == "a"
    assert len(children()) == 1
    found.close()
    assert list(predict_with_workers("run", [], workers=2)) == []


def test_rows_are_asked_for_as_they_are_needed(quick):
    asked = 0

    def coming():
        nonlocal asked
        for example in rows(*("x" for _n in range(4000))):
            asked += 1
            yield example

    ahead = 0
    for done, _prediction in enumerate(predict_with_workers("run", coming(), workers=2)):
        ahead = max(ahead, asked - done)
    assert asked == 4000
    assert ahead <= 4 * (workers.AHEAD_CHUNKS * 2 + 1)


def test_the_first_refusal_in_the_file_is_the_one_that_is_told(quick):
    asked = rows(*"aaaaaaaa", "refuse", "a", "a", "a", "refuse")
    found = predict_with_workers("run", asked, workers=2)
    assert [next(found).text for _n in range(8)] == ["a"] * 8
    with pytest.raises(Refusal) as refused:
        next(found)
    assert (refused.value.where, refused.value.code) == ("in.jsonl:9", "FT710")
    assert not children()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_file_that_breaks_off_gives_what_came_before(quick, count):
    def coming():
        yield from rows(*"abcdefghij")
        raise Refusal("damaged", where="in.jsonl:11")

    seen = []
    with pytest.raises(Refusal, match="damaged"):
        seen.extend(p.text for p in predict_with_workers("run", coming(), workers=count))
    assert seen == list("abcdefgh")


def test_a_file_that_breaks_off_at_once(quick):
    with pytest.raises(ZeroDivisionError):
        list(predict_with_workers("run", (1 / 0 for _n in range(1)), workers=2))


def test_a_mistake_in_a_worker_comes_with_its_traceback(quick):
    with pytest.raises(chunks.WorkerError, match="ValueError: the model broke") as raised:
        list(predict_with_workers("run", rows("a", "break"), workers=2))
    assert "stand_in.py" in str(raised.value.__cause__)
    assert not children()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize(("word", "code", "says"), [("die", "FT315", "killed"), ("leave", "", "exit code 3")])
def test_a_worker_that_dies_ends_the_work(quick, word, code, says):
    with pytest.raises(Refusal, match=says) as refused:
        list(predict_with_workers("run", rows(*"aaaaaaaa", word, *("sleep",) * 8), workers=2))
    assert refused.value.code == code
    assert not children()


def test_one_that_cannot_begin_says_why(quick, monkeypatch):
    monkeypatch.setattr(workers, "_START", stand_in.START.format("work_badly"))
    with pytest.raises(Refusal, match="no such model"):
        list(predict_with_workers("run", rows(*"aaaaaaaa"), workers=2))
    monkeypatch.setattr(workers, "_START", "raise SystemExit(5)")
    with pytest.raises(Refusal, match="exit code 5"):
        list(predict_with_workers("run", rows(*"aaaaaaaa"), workers=2))


def test_leaving_early_ends_processes_that_are_at_work(quick):
    found = predict_with_workers("run", rows(*"aaaa", *("sleep",) * 40), workers=2)
    next(found)
    assert len(children()) == 2
    begin = time.monotonic()
    found.close()
    assert not children()
    assert time.monotonic() - begin < 20


_PROGRAM = """
import signal
import sys
# Whoever runs the tests in the background of a shell has Ctrl-C ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
from fitune.predicting import workers
from fitune.cli import main
from tests.predicting import stand_in
workers._START = stand_in.START.format("work")
workers.STREAMED_EXAMPLES = 4
main(["predict", "run", "in.jsonl", "--workers", "2", *sys.argv[1:]])
"""


def command(folder, words, *more, **options):
    """``fitune predict --workers 2`` over these texts as a process, with stand-ins."""
    (folder / "in.jsonl").write_text("".join(f'{{"text": "{word}"}}\n' for word in words), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *filter(None, sys.path)])}
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *more],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def wait_for_two(process):
    deadline = time.monotonic() + 60
    while len(found := psutil.Process(process.pid).children()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGKILL, -9)])
def test_however_the_command_ends_its_workers_end_too(tmp_path, signal_number, code):
    process = command(tmp_path, ["a"] * 4 + ["sleep"] * 40, "-o", "out.jsonl")
    found = wait_for_two(process)
    time.sleep(0.5)
    process.send_signal(signal_number)
    _out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert b"Traceback" not in err
    _gone, alive = psutil.wait_procs(found, timeout=10)
    assert not alive
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_reader_that_leaves_is_no_error(tmp_path):
    process = command(tmp_path, ["a" * 500] * 4000)
    found = wait_for_two(process)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 141
    assert process.stderr.read() == b""
    assert not psutil.wait_procs(found, timeout=10)[1]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize(("word", "code"), [("refuse", 2), ("die", 2), ("break", 1)])
def test_the_command_leaves_no_half_file(tmp_path, word, code):
    process = command(tmp_path, ["a"] * 30 + [word], "-o", "out.jsonl")
    _out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"Traceback" not in err
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl"}
    if word == "refuse":
        assert b"in.jsonl:31" in err


# -- how many ------------------------------------------------------------------------------------------------------


def test_no_more_than_fit_into_half_of_the_free_memory(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    (tmp_path / "checkpoints").mkdir()
    for place in ("model/model.safetensors", "checkpoints/state.safetensors"):
        with (tmp_path / place).open("wb") as file:
            file.truncate(2**29 if place.startswith("model") else 2**34)
    monkeypatch.setattr(workers, "_room_bytes", lambda: 5 * 2**30)
    assert workers.most_workers(tmp_path) == 2
    asked = rows(*("a" for _n in range(3 * chunks.STREAMED_EXAMPLES)))
    with pytest.raises(Refusal, match=r"3 workers need about 6\.0 GiB") as refused:
        next(predict_with_workers(tmp_path, asked, workers=3))
    assert refused.value.next_step == "--workers 2"


def test_cores_are_those_that_are_allowed(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert workers.cores_here() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert 1 <= workers.cores_here() <= (os.cpu_count() or 1)


def test_not_on_a_card(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    with pytest.raises(Refusal, match="graphics card"):
        refuse_workers_on_cuda(None, "torch")
    refuse_workers_on_cuda("cpu", "torch")
    refuse_workers_on_cuda(None, "ctranslate2")


# -- what goes over the pipes --------------------------------------------------------------------------------------

anything = st.text(st.characters(), max_size=8)
numbers = st.floats(width=32) | st.floats(0, 1)


@given(st.lists(st.tuples(anything, st.none() | anything, st.none() | st.builds(Source, anything, st.integers(1)))))
def test_examples_come_through(parts):
    examples = [Example(text, text_pair=pair, source=source) for text, pair, source in parts]
    line = chunks.pack_examples(examples)
    assert line.count(b"\n") == 1
    assert chunks.unpack_examples(line) == examples


@given(anything, numbers, st.dictionaries(anything, numbers))
def test_predictions_come_through_with_all_bits(text, score, scores):
    examples = [Example(text + "xy", source=Source("a", 1)), Example(text, text_pair="b"), Example(text)]
    found = [
        Prediction(text + "xy", spans=(Span(0, 1, text, score), Span(1, 2, "B")), source=Source("a", 1)),
        Prediction(text, labels=("yes", text), scores=scores, text_pair="b"),
        Prediction(text, spans=(), labels=()),
    ]
    back = chunks.unpack_predictions(chunks.pack_predictions(found), examples)
    if all(map(math.isfinite, (score, *scores.values()))):
        assert back == found
    assert repr(back) == repr(found)


def test_errors_come_through():
    class Special(Refusal):
        exit_code = 74

    with pytest.raises(Refusal) as refused:
        chunks.unpack_predictions(chunks.pack_error(Special("f", where="w", next_step="n", code="FT601")), ())
    error = refused.value
    assert (error.found, error.where, error.next_step, error.code, error.exit_code) == ("f", "w", "n", "FT601", 74)
    with pytest.raises(FileNotFoundError) as missing:
        chunks.unpack_predictions(chunks.pack_error(FileNotFoundError(2, "No such file", "x")), ())
    assert missing.value.filename == "x"
    with pytest.raises(chunks.WorkerError, match=r"^KeyError$"):
        chunks.unpack_predictions(chunks.pack_error(KeyError()), ())
