"""Damage the fixtures in many ways and read them: each file must give rows or a refusal, and lose no row uncounted.

python benchmarks/mutations.py                # 10,000 files, about ten minutes
python benchmarks/mutations.py 300 --seed 7   # what the tests do
"""

import argparse
import faulthandler
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fitune.data import Rows, read, write
from fitune.values import Refusal

FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "data" / "fixtures"
ENCODINGS = ("gb18030", "utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "big5", "utf-32", "latin-1", "cp1252")
TOKENS = (
    *(
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\t",
        b",",
        b'"',
        b"\n",
        b"\r",
        b"\r\n",
        b" ",
        b"[",
        b"]",
        b"{",
        b"}",
        b"\\",
        b":",
    ),
    *(
        b"NaN",
        b"1e999",
        b"-1",
        b"9" * 5000,
        b"[" * 20000,
        b'{"a":' * 5000,
        b"null",
        b"\\ud83d",
        b"{{",
        b"}}",
        b"/",
        b"=1+1",
    ),
    *(
        b"\xed\xa0\xbd",
        b"\xe2\x80\x8b",
        b"\xe3\x80\x80",
        b"\xc2\xa0",
        b"\xf0\x9f\x99\x82",
        b"B-",
        b"I-X",
        b"O",
        b"-DOCSTART-",
    ),
)


def mutate(content: bytes, rng: random.Random) -> bytes:
    """One to three kinds of damage."""
    for _round in range(rng.choice((1, 1, 2, 3))):
        content = rng.choice(KINDS)(content, rng)
    return content


def truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def behead(content: bytes, rng: random.Random) -> bytes:
    return content[rng.randrange(len(content) + 1) :]


def recode(content: bytes, rng: random.Random) -> bytes:
    return content.decode("utf-8", "ignore").encode(rng.choice(ENCODINGS), "ignore")


def insert(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice(TOKENS) + content[at:]


def insert_often(content: bytes, rng: random.Random) -> bytes:
    token = rng.choice(TOKENS[:16])
    out = bytearray()
    for byte in content:
        out.append(byte)
        if rng.random() < 0.02:
            out += token
    return bytes(out)


def flip(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _i in range(rng.randrange(1, 20)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def delete(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content) + 1)
    return content[:start] + content[start + rng.randrange(1, 40) :]


def swap_columns(content: bytes, rng: random.Random) -> bytes:
    separator = rng.choice((b"\t", b",", b" ", b"/", b'": "'))
    share = rng.choice((0.1, 1.0))
    return b"\n".join(
        separator.join(reversed(line.split(separator))) if rng.random() < share else line
        for line in content.split(b"\n")
    )


def separators(content: bytes, rng: random.Random) -> bytes:
    """Doubled, removed or replaced, everywhere or here and there."""
    separator = rng.choice((b"\t", b",", b" ", b"\n", b'"', b":", b"/"))
    other = rng.choice((b"", separator * 2, b";", b"|", b"\t"))
    if rng.random() < 0.5:
        return content.replace(separator, other)
    parts = content.split(separator)
    out = parts[0]
    for part in parts[1:]:
        out += (other if rng.random() < 0.1 else separator) + part
    return out


def shuffle_lines(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def repeat(content: bytes, rng: random.Random) -> bytes:
    return content * rng.choice((2, 5)) if len(content) < 20_000 else content


def splice(content: bytes, rng: random.Random) -> bytes:
    """Half of this file and half of another."""
    other = rng.choice(sources()).read_bytes()
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other)) :]


def noise(content: bytes, rng: random.Random) -> bytes:
    return rng.randbytes(rng.randrange(1, 2000))


KINDS = (
    *(truncate, behead, recode, insert, insert, insert_often, flip, delete, swap_columns, separators, separators),
    *(shuffle_lines, repeat, splice, noise),
)


def sources() -> list[Path]:
    return sorted(path for path in FIXTURES.rglob("*") if path.is_file())


def examine(path: Path) -> str:
    """``rows`` or ``refused``. Raises AssertionError when a row is lost, whatever else the reader raises."""
    try:
        rows = read(path)
    except Refusal as refusal:
        if not (refusal.found and refusal.where):
            raise AssertionError("a refusal that does not say where or what") from refusal
        return "refused"
    _count_lines(path, rows)
    counted = len(rows.examples) + len(rows.skipped) + rows.merged
    assert rows.rows_in_file == counted, f"{rows.rows_in_file} rows in the file, {counted} accounted for"
    for example in rows.examples:
        assert example.source is not None
        example.text.encode()
    copy = path.with_name("copy" + path.suffix)
    try:
        write(copy, rows.examples, rows.format)
    except Refusal:
        return "rows"
    reread = read(copy, format=rows.format)
    if reread.format.encoding != rows.format.encoding and rows.format.encoding != "utf-8":
        # A few damaged bytes were taken for GB18030, say; what was written of them is valid UTF-8 too, which wins.
        return "rows whose bytes are valid in two encodings"
    again = [(e.text, e.spans, e.labels, e.text_pair) for e in reread.examples]
    assert again == [(e.text, e.spans, e.labels, e.text_pair) for e in rows.examples], "written, it reads otherwise"
    return "rows"


def _count_lines(path: Path, rows: Rows) -> None:
    """Counts again, without the reader: in formats of lines every line is a row or is counted as none."""
    format = rows.format
    content = path.read_bytes().decode(format.encoding, "surrogateescape")
    lines = content.split("\r" if format.newline == "\r" else "\n")
    if lines and not lines[-1]:
        lines.pop()
    told = rows.rows_in_file + sum(rows.structure.values())
    by_line = format.name in ("text", "tag-cells", "word-tag", "inline") or format.details.get("container") == "lines"
    if by_line or (format.name in ("csv", "tsv") and not format.details["quoting"]):
        assert told == len(lines), f"{len(lines)} lines, {told} told"
    if format.name == "columns":
        blank = sum(not line or line.isspace() for line in lines)
        assert rows.structure.get("blank", 0) == blank, "blank lines"
        starts = [
            i for i, line in enumerate(lines) if not line.isspace() and line and (i == 0 or not lines[i - 1].strip())
        ]
        assert rows.rows_in_file <= len(starts) <= rows.rows_in_file + rows.structure.get("docstart", 0), "sentences"


def run(count: int, seed: int, folder: Path, *, first: int = 0) -> Counter[str]:
    """Damage and read ``count`` files; file number n depends on (seed, n) alone."""
    outcome: Counter[str] = Counter()
    for number in range(first, first + count):
        rng = random.Random(f"{seed}/{number}")
        source = rng.choice(sources())
        path = folder / f"mutated{source.suffix}"
        path.write_bytes(mutate(source.read_bytes(), rng))
        started = time.perf_counter()
        try:
            outcome[examine(path)] += 1
        except Exception as error:
            raise AssertionError(f"file {number} (from {source.name}, seed {seed}): {error!r}") from error
        assert time.perf_counter() - started < 20, f"file {number} (from {source.name}) took too long"
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep-going", action="store_true")
    chosen = parser.parse_args()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(chosen.first, chosen.first + chosen.count):
            # A hang says where. Armed anew for each file: to print the stack of a thread that runs can crash Python.
            faulthandler.dump_traceback_later(60, exit=True)
            try:
                total += run(1, chosen.seed, Path(folder), first=number)
            except AssertionError as error:
                total["failed"] += 1
                print(error, flush=True)
                if not chosen.keep_going:
                    raise
    faulthandler.cancel_dump_traceback_later()
    print(f"{sum(total.values())} files: " + ", ".join(f"{n} {kind}" for kind, n in sorted(total.items())))
    sys.exit(1 if total["failed"] else 0)


if __name__ == "__main__":
    main()
