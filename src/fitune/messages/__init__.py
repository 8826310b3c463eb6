"""The words for people, in Chinese and English, from one catalogue (gettext).

Code writes English: ``_("{rows} rows read from {path}", rows=3, path="a.csv")``. The Chinese stands in
``zh/<room>.po``, one file a room; ``python scripts/messages.py`` extracts, updates and compiles them
(the compiled ``.mo`` files are committed, so that nothing has to be compiled where fitune is installed).
"""

import gettext
import locale
import os
from functools import cache
from pathlib import Path
from typing import Any, Literal

from fitune.messages.system import system_reason

__all__ = ["_", "_n", "language", "set_language", "system_reason"]

Language = Literal["en", "zh"]
_chosen: list[Language] = []


def language() -> Language:
    """The language in use: the one set by ``set_language``, else the locale's."""
    if _chosen:
        return _chosen[0]
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(variable):
            return "zh" if value.lower().startswith("zh") else "en"
    return "zh" if (locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"


def set_language(chosen: Language) -> None:
    """Overrule the locale, for this process."""
    _chosen[:] = [chosen]


@cache
def _catalogue() -> dict[str, str]:
    """Every room's Chinese, merged."""
    merged: dict[str, str] = {}
    for path in sorted((Path(__file__).parent / "zh").glob("*.mo")):
        with path.open("rb") as file:
            translations = gettext.GNUTranslations(file)
        catalogue: dict[Any, str] = vars(translations)["_catalog"]
        merged.update({key: value for key, value in catalogue.items() if key and isinstance(key, str)})
    return merged


def _(text: str, /, **values: object) -> str:
    """``text`` in the reader's language, with ``{name}`` places filled from ``values`` (str.format)."""
    if language() == "zh":
        text = _catalogue().get(text, text)
    return text.format(**values) if values else text


def _n(one: str, many: str, count: int, /, **values: object) -> str:
    """``one`` or ``many``, as English asks for ``count``; Chinese has one form, kept under ``many``.

    ``{count}`` is filled without being named: ``_n("{count} row", "{count} rows", 1)``.
    """
    if language() == "zh":
        return _(many, count=count, **values)
    return (one if count == 1 else many).format(count=count, **values)
