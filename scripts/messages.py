"""Keep the Chinese catalogue true: extract the English texts of each room, update its .po, compile its .mo.

python scripts/messages.py              # update all rooms; texts without a translation are listed
python scripts/messages.py data cli     # only these rooms
python scripts/messages.py --check      # change nothing; exit 1 if a text is untranslated or a .mo is stale
"""

import io
import sys
from datetime import datetime, timezone
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

SOURCE = Path(__file__).resolve().parent.parent / "src" / "fitune"
ZH = SOURCE / "messages" / "zh"
# Chinese knows no plural: of _n(one, many, count) the second is kept.
KEYWORDS = {"_": None, "N_": None, "_n": (2,)}


def extract(room: str) -> Catalog:
    """Every text that the room passes to ``_`` or marks with ``N_``."""
    authors = "The fitune authors"
    catalog = Catalog(
        locale="zh",
        project="fitune",
        version="-",
        charset="utf-8",
        header_comment=f"# The Chinese of room {room}.",
        copyright_holder=authors,
        last_translator=authors,
        language_team="zh",
        fuzzy=False,
    )
    methods = [("**.py", "python"), ("**.html", "jinja2.ext.babel_extract")]
    for path, _line, text, comments, context in extract_from_dir(
        str(SOURCE / room), method_map=methods, keywords=KEYWORDS, comment_tags=("Translators:",)
    ):
        # No line numbers: they would change the catalogue with every edit of the code.
        catalog.add(text, locations=[(f"{room}/{path}", None)], auto_comments=comments, context=context)
    return catalog


def update(room: str) -> Catalog:
    """The room's texts with the translations that its .po already has; texts that are gone are dropped."""
    fresh, path = extract(room), ZH / f"{room}.po"
    if path.exists():
        with path.open("rb") as file:
            old = read_po(file, locale="zh")
        for message in fresh:
            if message.id and (known := old.get(message.id)) and not known.fuzzy:
                message.string = known.string
    return fresh


def po_bytes(catalog: Catalog) -> bytes:
    buffer = io.BytesIO()
    catalog.revision_date = catalog.creation_date = None  # type: ignore[assignment]
    write_po(buffer, catalog, sort_output=True, omit_header=False, width=120)
    lines = buffer.getvalue().decode().splitlines(keepends=True)
    volatile = ("POT-Creation-Date", "PO-Revision-Date", "Generated-By", "Report-Msgid-Bugs-To")
    return "".join(line for line in lines if not any(word in line for word in volatile)).encode()


def mo_bytes(catalog: Catalog) -> bytes:
    buffer = io.BytesIO()
    # A fixed date in the header: the same texts give the same bytes.
    then = datetime(2026, 1, 1, tzinfo=timezone.utc)
    with_text = Catalog(locale="zh", charset="utf-8", creation_date=then, revision_date=then)
    for message in catalog:
        if message.id and message.string:
            with_text.add(message.id, message.string)
    write_mo(buffer, with_text)
    return buffer.getvalue()


def translations(mo: bytes) -> dict[str, str]:
    import gettext

    return {k: v for k, v in vars(gettext.GNUTranslations(io.BytesIO(mo)))["_catalog"].items() if k}


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    rooms = [a for a in arguments if not a.startswith("-")] or sorted(
        p.name for p in SOURCE.iterdir() if p.is_dir() and (p / "__init__.py").exists() and p.name != "messages"
    )
    wrong = 0
    for room in rooms:
        catalog = update(room)
        messages = [m for m in catalog if m.id]
        po, mo = ZH / f"{room}.po", ZH / f"{room}.mo"
        if not messages:
            if not check:
                po.unlink(missing_ok=True)
                mo.unlink(missing_ok=True)
            continue
        for message in messages:
            if not message.string:
                wrong += 1
                print(f"{room}: no Chinese for {message.id!r} ({message.locations[0][0]})")
        compiled = mo_bytes(catalog)
        # The command-line parser asks gettext for its own words, where gettext looks for them.
        targets = [mo, ZH / "LC_MESSAGES" / "parser.mo"] if room == "cli" else [mo]
        if check:
            if any(not t.exists() or translations(t.read_bytes()) != translations(compiled) for t in targets):
                wrong += 1
                print(f"{room}: {mo.name} is stale; run: python scripts/messages.py {room}")
        else:
            po.parent.mkdir(parents=True, exist_ok=True)
            po.write_bytes(po_bytes(catalog))
            for target in targets:
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(compiled)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
