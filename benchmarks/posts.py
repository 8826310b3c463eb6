"""The articles' three figures, and published speeds, beside fitune's: python benchmarks/posts.py

Writes both tables into the pages "How much memory does BERT really need?" (docs).

Two articles say what bert-base-chinese needs for named-entity recognition: 9.2 GB at 4 x 512, 11.2 GB at 16 x 128 with
fp16, 13.8 GB at 16 x 512, which "a 12 GB card cannot run". The same three settings are planned here as they stand
there (padded to max_length, the whole batch in one pass), with the library's default attention kernel and with the
eager one; then as fitune would plan them, the batch size kept.
"""

from __future__ import annotations

import time
from pathlib import Path

from fitune.catalog import card_of
from fitune.planning.planner import search_for
from fitune.planning.searching import Search
from fitune.planning.timing import HIGH, LOW, pass_seconds
from fitune.planning.workload import fixed_workload
from fitune.values import Fit, Job

GIB = 1 << 30
ROOT = Path(__file__).resolve().parent.parent
LABELS = ("address", "book", "company", "game")
CLAIMS = ((4, 512, "fp32", 9.2), (16, 128, "fp16", 11.2), (16, 512, "fp32", 13.8))
SPEEDS = (
    ("v100-16g", 384, "fp16", 189),
    ("a10", 384, "fp16", 135),
    ("a100-40g", 384, "fp16", 443),
    ("h100", 384, "fp16", 870),
    ("h200", 384, "fp16", 932),
)
"""Card, length, precision, samples a second: NVIDIA's published BERT-base SQuAD fine-tuning."""
BATCH = 32
"""Ours: the published figures come without one. With 128 the prediction is 4 % (V100) to 16 % (H100) higher."""


def job(batch: int) -> Job:
    return Job(train="posts", task="ner", head="softmax", batch_size=batch, epochs=3)


def memory_rows(first: Search) -> list[str]:
    rows: list[str] = []
    card = card_of("rtx3060-12g")
    for batch, length, precision, claim in CLAIMS:
        search = first.of(fixed_workload(job(batch), LABELS, length, 4 * batch))
        cells = [
            search.predict(Fit(precision=precision, attention=attention), card).peak_bytes / GIB  # type: ignore[arg-type]
            for attention in ("eager", "sdpa")
        ]
        lean = search.leanest("exact", card).peak_bytes / GIB
        eight = search.leanest("rounding", card).peak_bytes / GIB
        shown = [f"{value:.2f}" for value in (*cells, lean, eight)]
        rows.append(f"| {batch} x {length} {precision} | {claim} | {' | '.join(shown)} |")
    return rows


def speed_rows(first: Search) -> list[str]:
    rows: list[str] = []
    template = first.template(Fit(precision="fp16"))
    for name, length, _precision, published in SPEEDS:
        card = card_of(name)
        seconds = float(pass_seconds(template, [(BATCH, length)], card)[0])
        low, high = BATCH / (seconds * HIGH), BATCH / (seconds * LOW)
        verdict = "yes" if low <= published <= high else "no"
        rows.append(f"| {card.name} | {published} | {BATCH / seconds:.0f} ({low:.0f} - {high:.0f}) | {verdict} |")
    return rows


HEADS = {
    ("en", "memory"): (
        "| setting | article, GB | eager attention | today's default | leanest EXACT | leanest, 8-bit state |",
        "|---|---|---|---|---|---|",
    ),
    ("zh", "memory"): (
        "| 设置 | 文章，GB | eager 注意力 | 现在的默认 | 最省（EXACT） | 最省，8 位状态 |",
        "|---|---|---|---|---|---|",
    ),
    ("en", "speed"): (
        "| card | published, samples/s | predicted (range) | inside the range |",
        "|---|---|---|---|",
    ),
    ("zh", "speed"): (
        "| 显卡 | 公开的每秒样本数 | 预测（范围） | 在范围内 |",
        "|---|---|---|---|",
    ),
}


def write_table(page: Path, name: str, head: tuple[str, str], rows: list[str]) -> None:
    """Replace what stands between the marks of this table."""
    text = page.read_text(encoding="utf-8")
    before, mark, rest = text.partition(f"<!-- posts: {name} -->\n")
    after = rest.partition("<!-- end -->")[2]
    page.write_text("\n".join([before + mark, *head, *rows, "", "<!-- end -->"]) + after, encoding="utf-8")


def main() -> None:
    begun = time.process_time()
    first, _notes = search_for(job(BATCH), fixed_workload(job(BATCH), LABELS, 384, BATCH))
    tables = {"memory": memory_rows(first), "speed": speed_rows(first)}
    for (language, name), head in HEADS.items():
        page = ROOT / "docs" / language / "explanation" / "how-much-memory.md"
        write_table(page, name, head, tables[name])
        if language == "en":
            print("\n".join([*head, *tables[name], ""]))
    print(f"{time.process_time() - begun:.0f} CPU-seconds")


if __name__ == "__main__":
    main()
