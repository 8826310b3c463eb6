"""The articles' 16 x 512 job: what its leanest plans need, and that the documentation says the same."""

import re
from pathlib import Path

import pytest

from fitune.catalog import card_of
from fitune.planning.planner import search_for
from fitune.planning.workload import fixed_workload
from fitune.values import Job

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / language / "explanation" / "how-much-memory.md" for language in ("en", "zh")]
GIB = 1 << 30


def rows(page: Path, mark: str) -> list[list[str]]:
    """Cells of the table that benchmarks/posts.py wrote."""
    table = page.read_text(encoding="utf-8").partition(f"<!-- posts: {mark} -->")[2].partition("<!-- end -->")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n") if line.startswith("|")
    ][2:]


def test_both_languages_show_the_same_figures() -> None:
    for mark, count in (("memory", 3), ("speed", 5)):
        assert rows(PAGES[0], mark) == rows(PAGES[1], mark)
        assert len(rows(PAGES[0], mark)) == count


def test_the_documented_figures_keep_what_is_promised() -> None:
    for row in rows(PAGES[0], "memory"):
        eager, today, lean, eight = (float(cell) for cell in row[2:])
        assert eight < lean < today < eager < float(row[1])
        assert lean <= 2.2
        assert eight <= 1.5
    for _card, published, predicted, inside in rows(PAGES[0], "speed"):
        low, high = (int(n) for n in re.findall(r"\d+", predicted)[1:])
        assert low <= int(published) <= high
        assert inside == "yes"


@pytest.mark.slow
def test_the_leanest_plans_of_the_articles_job() -> None:
    job = Job(train="x", task="ner", head="softmax", batch_size=16, epochs=1)
    search, _notes = search_for(job, fixed_workload(job, ("a", "b", "c", "d"), 512, 32))
    card = card_of("rtx3060-12g")
    exact, eight = search.leanest("exact", card), search.leanest("rounding", card)
    assert exact.peak_bytes <= 2.2 * GIB
    assert eight.peak_bytes <= 1.5 * GIB
    shown = next(row for row in rows(PAGES[0], "memory") if row[0].startswith("16 x 512"))
    assert [f"{c.peak_bytes / GIB:.2f}" for c in (exact, eight)] == shown[4:]
