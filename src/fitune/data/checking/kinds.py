"""The kinds of findings about data (FT1xx) and about text meeting tokenizer (FT2xx): one code, one title, why, fix.

A code is stable once given. Texts are marked with ``N_`` here and translated when a finding is made.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from fitune.data.rows import whereabouts
from fitune.messages import _, _n
from fitune.values import Example, Finding, Fix

_SHOWN = 3
_SHOWN_CHARACTERS = 40


def N_(text: str) -> str:
    """Mark a text for the catalogue; it is translated where it is used."""
    return text


@dataclass(frozen=True)
class Kind:
    code: str
    severity: Literal["error", "warning", "note"]
    title: str
    """Filled with ``count`` and what else the place that finds it gives."""
    why: str
    fix: str
    safety: Literal["safe", "unsafe", "display"] = "display"
    """safe: ``check --fix`` does it."""
    one: str = ""
    """The English title where ``count`` is 1; Chinese says it as ``title``."""


_REPAIR = "fitune check {file} --fix OUT"

KINDS: dict[str, Kind] = {
    kind.code: kind
    for kind in (
        Kind(
            "FT101",
            "warning",
            N_("{split}: {count} rows repeat the text and the labels of an earlier row"),
            N_("Repeated rows weigh more in training, and a split into train and dev may put copies on both sides."),
            N_("Keep the first of each."),
            "safe",
            one="{split}: one row repeats the text and the labels of an earlier row",
        ),
        Kind(
            "FT102",
            "warning",
            N_("{split}: {count} texts stand there with different labels"),
            N_("The model cannot get both right: the scores have a ceiling, and what is learned contradicts itself."),
            N_("Decide which label is right, and delete the other rows."),
            "unsafe",
            one="{split}: one text stands there with different labels",
        ),
        Kind(
            "FT103",
            "warning",
            N_("{split}: {count} of {texts} different texts are also in {other}"),
            N_("Scores on texts that were trained on are too good. Scores are given with and without these rows."),
            N_("Remove them from {other}, or quote the score without them."),
            "unsafe",
            one="{split}: one of {texts} different texts is also in {other}",
        ),
        Kind(
            "FT104",
            "warning",
            N_("{split}: {count} entities overlap another one without lying inside it"),
            N_("One tag a character cannot hold both: the longer entity is kept, the other one is not trained on."),
            N_("Decide where each entity begins and ends."),
            "unsafe",
            one="{split}: one entity overlaps another one without lying inside it",
        ),
        Kind(
            "FT105",
            "warning",
            N_("{split}: {count} entities lie inside another entity"),
            N_("One tag a character cannot hold both: the outer entity is kept, the inner one is not trained on."),
            N_("Leave it, if these are few; otherwise label the inner ones in a file of their own."),
            one="{split}: one entity lies inside another entity",
        ),
        Kind(
            "FT106",
            "error",
            N_("{split}: {count} rows have labels that {other} never has: {labels}"),
            N_("The model cannot learn a label that it never sees; every one of these counts as an error."),
            N_("Correct the label names, or move some of these rows to {other}."),
            one="{split}: one row has a label that {other} never has: {labels}",
        ),
        Kind(
            "FT107",
            "error",
            N_("{split}: all {count} rows have one class, {labels}"),
            N_("There is nothing to tell apart; a model that always answers this class is perfect."),
            N_("Rows of another class are missing, or the labels stand in another column: --label-column NAME."),
            one="{split}: there is one row, of the class {labels}",
        ),
        Kind(
            "FT108",
            "note",
            N_("{split}: {count} repeats of a labelled entity are not labelled in the same text"),
            N_("If they are entities too, the model is punished for finding them."),
            N_("Label them, if they mean the same."),
            "unsafe",
            one="{split}: one repeat of a labelled entity is not labelled in the same text",
        ),
        Kind(
            "FT109",
            "warning",
            N_("{split}: {count} tags may not follow the tag before them"),
            N_("A stray inside tag was read as the beginning of an entity, as conlleval does."),
            N_("Correct the tags; a repaired copy has valid ones."),
            "safe",
            one="{split}: one tag may not follow the tag before it",
        ),
        Kind(
            "FT110",
            "warning",
            N_("{split}: {count} entities begin or end with whitespace"),
            N_("Tokenizers drop whitespace, so that these entities can never be found exactly."),
            N_("Take the whitespace off the entity."),
            "safe",
            one="{split}: one entity begins or ends with whitespace",
        ),
        Kind(
            "FT111",
            "warning",
            N_("{split}: {count} texts are empty"),
            N_("There is nothing to learn from them; the model sees special tokens alone."),
            N_("Remove the rows."),
            "safe",
            one="{split}: one text is empty",
        ),
        Kind(
            "FT112",
            "note",
            N_("{split}: {share} % of the rows have the class {labels}"),
            N_("Accuracy says little here: always answering this class scores as much. Look at macro-F1."),
            N_("Choose metric = \"macro_f1\", and try class_weights = \"balanced\"."),
        ),
        Kind(
            "FT113",
            "warning",
            N_("{split}: {count} labels occur less than {least} times: {labels}"),
            N_("A handful of examples is too few to learn from, and their scores jump with every change."),
            N_("Add examples, or join these labels with others."),
            one="{split}: one label occurs less than {least} times: {labels}",
        ),
        Kind(
            "FT114",
            "warning",
            N_("{split}: {count} rows of the file could not be used"),
            N_("They are not trained on. The first ones and the reasons are named here."),
            N_("Correct these rows."),
            one="{split}: one row of the file could not be used",
        ),
        Kind(
            "FT115",
            "warning",
            N_("{split}: {count} texts hold a byte order mark (U+FEFF)"),
            N_("An invisible character, left over from joining files; it makes equal texts different."),
            N_("Remove the character."),
            "safe",
            one="{split}: one text holds a byte order mark (U+FEFF)",
        ),
        Kind(
            "FT116",
            "note",
            N_("{split}: the {count} rows are sorted by class"),
            N_("Training shuffles, so that does no harm; but cutting the file anywhere gives parts with one class."),
            N_("Let fitune split the file, or shuffle before cutting."),
        ),
        Kind(
            "FT117",
            "warning",
            N_("{split}: {count} of {rows} rows have no label"),
            N_("They are left out: nothing is trained on them, and they are not scored."),
            N_("Label them, or take them out of the file; the model can label them later: fitune predict RUN FILE"),
            one="{split}: one of {rows} rows has no label",
        ),
        Kind(
            "FT118",
            "note",
            N_("{split}: {count} texts hold U+FFFD, which stands for a character that could not be read"),
            N_("The file was once read in the wrong encoding; the character is lost."),
            N_("Go back to the original file, if there is one."),
            one="{split}: one text holds U+FFFD, which stands for a character that could not be read",
        ),
        Kind(
            "FT119",
            "note",
            N_("{split}: {note}"),
            N_("The reader noticed this and went on."),
            N_("Nothing to do, if you expected it; otherwise look there, or name the format with --format."),
        ),
        Kind(
            "FT121",
            "warning",
            N_("{split}: labels that differ only in case, width or blanks: {labels}"),
            N_("They are probably meant to be one label."),
            N_("Write the label in one way."),
        ),
        Kind(
            "FT123",
            "warning",
            N_("{split}: one sentence of {count} characters: the blank lines between sentences seem to be missing"),
            N_("A sentence is a row: this one cannot be split into train and dev, and is cut wherever a window ends."),
            N_("Put a blank line after each sentence, for example after each line whose character is 。, ！ or ？."),
        ),
        Kind(
            "FT131",
            "error",
            N_("{split}: no label in any of the {count} rows; read as {format}: {recognized}"),
            N_(
                "There is nothing to learn from and nothing to score: the labels were not recognised, or it has none."
            ),
            N_(
                "Name the column with --label-column NAME, or the format with --format NAME; texts without labels are "
                "for fitune predict RUN {file}"
            ),
            one="{split}: no label in the one row; read as {format}: {recognized}",
        ),
        Kind(
            "FT210",
            "warning",
            N_("{split}: {share} % of the tokens are unknown ([UNK])"),
            N_("The model cannot tell unknown characters apart. The most frequent: {characters}"),
            N_("Choose a model whose vocabulary has these characters."),
        ),
        Kind(
            "FT211",
            "warning",
            N_("{split}: {count} entities ({share} %) hold an unknown token; by label: {labels}"),
            N_("What is written there is hidden from the model; it can go by the context alone."),
            N_("Choose a model whose vocabulary has these characters."),
            one="{split}: one entity ({share} %) holds an unknown token; by label: {labels}",
        ),
        Kind(
            "FT212",
            "warning",
            N_("{split}: {count} entities cannot be expressed in tokens"),
            N_("They begin or end inside a token, or on characters that the tokenizer drops: never found exactly."),
            N_("Correct the ends of these entities, or choose a model that reads character by character."),
            one="{split}: one entity cannot be expressed in tokens",
        ),
        Kind(
            "FT213",
            "warning",
            N_("{split}: the tokenizer drops {count} visible characters: {characters}"),
            N_("The model does not see them at all."),
            N_("Choose another model, if they matter."),
            one="{split}: the tokenizer drops one visible character: {characters}",
        ),
        Kind(
            "FT214",
            "note",
            N_("{split}: {count} texts are longer than a window of {tokens} tokens"),
            N_("They are split into overlapping windows ({windows} in all); nothing is cut off."),
            N_("Nothing to do."),
            one="{split}: one text is longer than a window of {tokens} tokens",
        ),
    )
}  # fmt: skip


@dataclass
class Tally:
    """How often something was seen, and where first."""

    count: int = 0
    evidence: list[str] = field(default_factory=list[str])

    def add(self, example: Example, what: str = "", *, number: int = 1) -> None:
        self.count += number
        if len(self.evidence) < _SHOWN:
            self.evidence.append(show(example, what))


def show(example: Example, what: str = "") -> str:
    """``file:line: what``, or the beginning of the text."""
    shown = what or clip(example.text)
    return f"{whereabouts(example.source)}: {shown}" if example.source else shown


def clip(text: str, most: int = _SHOWN_CHARACTERS) -> str:
    """One line of at most ``most`` characters."""
    line = " ".join(text[: most + 1].split())
    return line if len(line) <= most and len(text) <= most + 1 else line[:most] + "…"


def finding(
    code: str,
    count: int,
    evidence: Iterable[str] = (),
    *,
    file: str = "FILE",
    settings: dict[str, str | int | float | bool | None] | None = None,
    more_fixes: Sequence[Fix] = (),
    **values: object,
) -> Finding:
    """A Finding of this kind, in the reader's language."""
    kind = KINDS[code]
    fix = Fix(
        safety=kind.safety,
        text=_(kind.fix, count=count, file=file, **values),
        settings=settings or {},
        command=_REPAIR.format(file=file) if kind.safety == "safe" else None,
    )
    return Finding(
        code=code,
        severity=kind.severity,
        title=_n(kind.one or kind.title, kind.title, count, **values),
        evidence=tuple(evidence)[:_SHOWN],
        count=count,
        why=_(kind.why, count=count, **values),
        fixes=(*more_fixes, fix),
    )
