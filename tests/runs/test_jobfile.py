from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitune.messages import set_language
from fitune.runs import job_sentences, job_toml, read_job_toml, write_job_toml
from fitune.values import Job, Refusal

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip)
jobs = st.builds(
    Job,
    train=texts,
    dev=st.none() | texts,
    task=st.sampled_from([None, "ner", "classification"]),
    epochs=st.none() | st.floats(0.01, 1000),
    learning_rate=st.none() | st.floats(1e-9, 1),
    multi_label=st.sampled_from([None, True, False]),
    class_weights=st.none() | st.just("balanced") | st.dictionaries(texts, st.floats(0.01, 100), min_size=1),
    seed=st.integers(0, 2**32 - 1),
)


@given(job=jobs)
def test_write_then_read_is_the_identity(tmp_path_factory: pytest.TempPathFactory, job: Job) -> None:
    path = tmp_path_factory.mktemp("job") / "job.toml"
    write_job_toml(job, path)
    assert read_job_toml(path) == job


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_field_stands_there_with_its_sentence(language: str) -> None:
    set_language(language)  # type: ignore[arg-type]
    try:
        text = job_toml(Job(train="train.json"))
        assert job_sentences().keys() == Job.model_fields.keys()
        for field, sentence in job_sentences().items():
            assert f"# {sentence}\n" in text
            assert f"\n{field} = " in text or f"\n# {field} = " in text
            assert sentence.isascii() == (language == "en")
    finally:
        set_language("en")


def test_uncommenting_every_line_gives_a_valid_job(tmp_path: Path) -> None:
    lines = job_toml(Job(train="train.json")).splitlines()
    fields = tuple(f"# {field} = " for field in Job.model_fields)
    path = tmp_path / "job.toml"
    path.write_text("\n".join(line.removeprefix("# ") if line.startswith(fields) else line for line in lines))
    job = read_job_toml(path)
    assert all(getattr(job, field) is not None for field in Job.model_fields)


def refusal(tmp_path: Path, text: bytes) -> Refusal:
    path = tmp_path / "job.toml"
    path.write_bytes(text)
    with pytest.raises(Refusal) as caught:
        read_job_toml(path)
    assert str(caught.value.where).startswith(str(path))
    assert caught.value.next_step
    return caught.value


def test_all_errors_at_once(tmp_path: Path) -> None:
    found = refusal(tmp_path, b'train = "a"\nbatch_sise = 3\nepochs = -1\nclass_weights = 7\n').found
    assert "batch_sise" in found
    assert "did you mean batch_size" in found
    assert "epochs = -1" in found
    assert found.count("class_weights") == 1
    assert found.startswith("3 ")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b"", "train: missing"),
        (b'train = "a"\nmodel = bert\n', "line 2"),
        ('train = "训练.json"'.encode("gb18030"), "not UTF-8"),
        (b'train = " "', "train = ' '"),
        (b"[train]\nx = 1", "train"),
    ],
)
def test_one_error(tmp_path: Path, text: bytes, word: str) -> None:
    assert word in refusal(tmp_path, text).found


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_bytes(b'\xef\xbb\xbftrain = "a"')
    assert read_job_toml(path).train == "a"


def test_a_missing_file_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        read_job_toml(tmp_path / "job.toml")
    assert "fitune init" in caught.value.next_step


@pytest.mark.parametrize(
    ("line", "english"),
    [
        ('epochs = "many"', "must be a number"),
        ("epochs = -1", "must be greater than 0"),
        ("epochs = inf", "must be finite"),
        ("seed = 1.5", "must be a whole number"),
        ("batch_size = 0", "must be at least 1"),
        ("warmup_fraction = 1", "must be less than 1"),
        ("dev = 3", "must be a text in quotes"),
        ('dev = ""', "must not be empty"),
        ('multi_label = "perhaps"', "must be true or false"),
        ('head = "x"', "must be one of 'softmax', 'crf'"),
        ("class_weights = 3", 'must be "balanced", or a number for each label'),
        ('class_weights = {A = "x"}', "class_weights.A = 'x': must be a number greater than 0"),
        ("class_weights = {A = 1, B = -1}", "class_weights.B = -1: must be a number greater than 0"),
        ("class_weights = {A = 0}", "must be a number greater than 0"),
        ("class_weights = {A = nan}", "must be a number greater than 0"),
        ("class_weights = {A = inf}", "must be a number greater than 0"),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_wrong_value_is_told_its_rule_in_the_language(tmp_path: Path, line: str, english: str, language: str) -> None:
    path = tmp_path / "job.toml"
    path.write_text(f'train = "a"\n{line}\n', encoding="utf-8")
    set_language(language)  # type: ignore[arg-type]
    try:
        with pytest.raises(Refusal) as refused:
            read_job_toml(path)
    finally:
        set_language("en")
    found = refused.value.found
    assert "Input" not in found
    if language == "en":
        assert english in found
    else:
        assert any("一" <= character <= "鿿" for character in found)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("batch_size = true", "batch_size = true: must be a whole number"),
        ("batch_size = 16.0", "must be a whole number"),
        ('batch_size = "16"', "must be a whole number"),
        ('normalize_quotes = "yes"', "normalize_quotes = 'yes': must be true or false"),
        ("lowercase = 1", "must be true or false"),
        ("learning_rate = true", "must be a number"),
        ("class_weights = {A = true}", "must be a number"),
    ],
)
def test_a_value_of_another_kind_is_refused_at_its_line(tmp_path: Path, line: str, found: str) -> None:
    path = tmp_path / "job.toml"
    path.write_text(f'train = "a.json"\n{line}\n', encoding="utf-8")
    with pytest.raises(Refusal) as refusal:
        read_job_toml(path)
    assert found in refusal.value.found
    assert refusal.value.where == f"{path}:2"


def test_a_whole_number_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text('train = "a.json"\nepochs = 3\nclass_weights = {A = 2}\n', encoding="utf-8")
    assert read_job_toml(path).epochs == 3


def test_the_format_of_the_example_is_one() -> None:
    from fitune.data.formats import PATH_FORMATS, TEXT_FORMATS

    (line,) = [line for line in job_toml(Job(train="a")).splitlines() if line.startswith("# format = ")]
    assert line.partition(" = ")[2].strip('"') in {known.name for known in (*TEXT_FORMATS, *PATH_FORMATS)}
