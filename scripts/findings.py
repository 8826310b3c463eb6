"""Write the docs' pages of the findings from the rules' own pages, in both languages.

python scripts/findings.py            # write docs/en/findings and docs/zh/findings
python scripts/findings.py --check    # change nothing; exit 1 if a page is missing, stale or left over
"""

import sys
from pathlib import Path

from fitune.doctor import all_rules

DOCS = Path(__file__).resolve().parent.parent / "docs"
TITLES = {"en": "Findings", "zh": "发现"}


def pages() -> dict[Path, str]:
    """Path -> text of every page, with an index for each language."""
    found: dict[Path, str] = {}
    for language, title in TITLES.items():
        folder = DOCS / language / "findings"
        lines = [f"# {title}", ""]
        for rule in all_rules():
            page = rule.page(language)  # type: ignore[arg-type]
            found[folder / f"{rule.code}.md"] = page.markdown()
            lines.append(f"- [{rule.code}]({rule.code}.md) {page.title}")
        found[folder / "index.md"] = "\n".join(lines) + "\n"
    return found


def main(arguments: list[str]) -> int:
    wanted = pages()
    have = {path for language in TITLES for path in (DOCS / language / "findings").glob("*.md")}
    stale = [p for p, text in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    surplus = sorted(have - set(wanted))
    if "--check" in arguments:
        for path in [*stale, *surplus]:
            print(f"{path.relative_to(DOCS.parent)} is stale; run: python scripts/findings.py")
        return 1 if stale or surplus else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    for path in surplus:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
