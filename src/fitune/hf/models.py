"""Tokenizer, encoder and what windows need of them, from a model folder (see ``hub.resolve`` for names)."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fitune.data import FastEncoder
from fitune.messages import _
from fitune.values import Refusal

__all__ = ["LoadedModel", "check_tokenizer", "has_capitals", "load_model", "load_tokenizer", "make_encoder"]

PROBES = (
    "浙江大学的王老师 used an iPhone 15 Pro，花了￥8,999.00元！",
    "ＡＢＣ全角１２３　“引号”——破折号……省略号",
    "emoji😀😀 zero\u200bwidth é café ﬁ ㎡ №",
    "  leading, trailing \t and\nbroken lines  ",
)
"""Texts on which a tokenizer has to prove its offsets before anything is trained with it."""

_ROOM_BEFORE_POSITIONS = {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "roberta-prelayernorm"}
"""Model types whose position numbers start after the padding id: two of their positions are never used."""


@dataclass(frozen=True)
class LoadedModel:
    """A Hugging Face model and which of its weights are new."""

    model: Any
    new_weights: tuple[str, ...]
    """Names of the parameters that no file held: the head, and a pooler where the encoder brings none."""
    unused_weights: tuple[str, ...]
    """Names in the file that this model has no place for, such as a masked-language-model head."""


def load_tokenizer(folder: str | Path, *, lowercase: bool | None = None) -> Any:
    """The fast tokenizer of a model folder, checked on PROBES.

    ``lowercase``: None lower-cases exactly when the vocabulary has no capitals (bert-base-chinese says it keeps case,
    and then knows no capital: google-research/bert#1188). Its ``model_max_length`` is what the model really takes.
    Raises Refusal: no fast tokenizer, offsets that do not hold, more tokens than the model has embeddings.
    """
    folder = Path(folder)
    tokenizer = _open_tokenizer(folder)
    if lowercase is None:
        lowercase = True if not has_capitals(tokenizer) else None
    if lowercase is not None:
        tokenizer = _with_case(tokenizer, folder, lowercase)
    configuration = _configuration(folder)
    tokenizer.model_max_length = min(int(tokenizer.model_max_length), longest_input(configuration))
    check_tokenizer(tokenizer, configuration.get("vocab_size"), where=str(folder))
    return tokenizer


def _open_tokenizer(folder: Path, **options: Any) -> Any:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), **options)
    if not getattr(tokenizer, "is_fast", False):
        raise Refusal(
            _(
                "the tokenizer {name} is not a fast one, so it cannot say where a token lies",
                name=type(tokenizer).__name__,
            ),
            where=str(folder),
            next_step=_("Use a model with a tokenizer.json or a vocab.txt in its folder."),
            code="FT705",
        )
    return tokenizer


def _configuration(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refusal(
            _("the model's config.json cannot be read: {reason}", reason=error),
            where=str(folder),
            next_step=_("Copy it again from where the model came from."),
            code="FT703",
        ) from error


def longest_input(configuration: dict[str, Any]) -> int:
    """Tokens that the position embeddings cover, special tokens included; 512 where the model states none."""
    positions = int(configuration.get("max_position_embeddings") or 512)
    if configuration.get("model_type") in _ROOM_BEFORE_POSITIONS:
        positions -= int(configuration.get("pad_token_id") or 0) + 1
    return positions


def has_capitals(tokenizer: Any) -> bool:
    """Does any ordinary token hold a capital letter A-Z? Special tokens and [unused1] do not count."""
    special = set(tokenizer.all_special_tokens)
    return any(
        re.search("[A-Z]", token) and token not in special and not re.fullmatch(r"[\[<].*[\]>]", token)
        for token in tokenizer.get_vocab()
    )


def _with_case(tokenizer: Any, folder: Path, lowercase: bool) -> Any:
    """The tokenizer with lower-casing on or off, in a way that ``save_pretrained`` keeps."""
    if _lowers(tokenizer) == lowercase:
        return tokenizer
    changed = _open_tokenizer(folder, do_lower_case=lowercase)
    if _lowers(changed) == lowercase:
        return changed
    if not lowercase:
        raise Refusal(
            _("this tokenizer lower-cases its input and cannot be told not to"),
            where=str(folder),
            next_step=_("Leave lowercase unset."),
            code="FT705",
        )
    from tokenizers import normalizers

    backend = changed.backend_tokenizer
    steps = [normalizers.Lowercase(), *([backend.normalizer] if backend.normalizer else [])]
    backend.normalizer = normalizers.Sequence(steps)
    return changed


def _lowers(tokenizer: Any) -> bool:
    normalizer = tokenizer.backend_tokenizer.normalizer
    return normalizer is not None and "a" in normalizer.normalize_str("A")


def check_tokenizer(tokenizer: Any, embeddings: int | None, *, where: str = "") -> None:
    """Prove on PROBES that ids fit the model and that ``text[start:end]`` is what each token spells.

    ``embeddings``: rows of the model's word embeddings; None when not known. Raises Refusal (FT705) otherwise.
    """
    if embeddings is not None and len(tokenizer) > embeddings:
        raise _mismatch(
            _(
                "the tokenizer has {tokens} tokens, the model only {rows} embeddings",
                tokens=len(tokenizer),
                rows=embeddings,
            ),
            where,
        )
    for text in PROBES:
        encoded = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
        if problem := _problem(text, encoded.tokens, encoded.offsets, tokenizer.unk_token):
            raise _mismatch(problem, where)


def _problem(text: str, tokens: list[str], offsets: list[tuple[int, int]], unknown: str | None) -> str:
    """What is wrong with the tokens of ``text``; empty: nothing."""
    last = 0
    for token, (start, end) in zip(tokens, offsets, strict=True):
        if not last <= end <= len(text) or start > end:
            return _("its offsets run backwards at {token} in {text}", token=repr(token), text=repr(text))
        last = start
        if re.fullmatch("##[\u4e00-\u9fff]", token):
            return _("it reads Chinese as words ({token} continues one)", token=token)
        if token != unknown and not _reproduces(token, text[start:end]):
            return _(
                "its offsets do not hold: token {token} stands for {slice} in {text}",
                token=repr(token),
                slice=repr(text[start:end]),
                text=repr(text),
            )
    return ""


def _mismatch(found: str, where: str) -> Refusal:
    return Refusal(
        found,
        where=where,
        next_step=_("Take tokenizer and weights from the same model: copy its vocab.txt / tokenizer.json again."),
        code="FT705",
    )


def _reproduces(token: str, source: str) -> bool:
    spelled = _folded(token.removeprefix("##") if len(token) > 2 else token)
    if not spelled.isprintable() or any(unicodedata.category(c) in ("Mn", "Cn", "Co") for c in spelled):
        return True
    if _is_byte_level(token):
        return True  # byte-level tokens do not spell text
    original = _folded(source)
    return spelled in original or original in spelled or (spelled == "\u22ef" and original == "...")


def _is_byte_level(token: str) -> bool:
    """Byte-level vocabularies write byte n as a character from U+00A1-U+0143, the space as U+0120."""
    return all(ord(c) < 0x144 for c in token) and any(ord(c) >= 0xA1 for c in token)


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.replace("\u2581", "")).lower()
    return "".join(c for c in decomposed if unicodedata.category(c) not in ("Mn", "Cf", "Cc") and not c.isspace())


def make_encoder(tokenizer: Any, *, translation: dict[int, str] | None = None) -> FastEncoder:
    """The tokenizer as ``data.split`` sees it. ``translation``: a same-length map applied to the text first."""
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    alone, pair = tokenizer("的")["input_ids"], tokenizer("的", "的")["input_ids"]
    plain: list[int] = backend.encode("的", add_special_tokens=False).ids
    (before, after) = _around(alone, [plain])
    parts = _around(pair, [plain, plain])
    if parts[0] != before or parts[2] != after:
        raise _mismatch(_("it puts other special tokens around a pair than around one text"), type(tokenizer).__name__)
    return FastEncoder(
        backend,
        prefix=before,
        middle=parts[1],
        suffix=after,
        pad_id=int(tokenizer.pad_token_id or 0),
        unk_id=tokenizer.unk_token_id,
        max_length=int(tokenizer.model_max_length),
        uses_segments="token_type_ids" in tokenizer.model_input_names,
        translation=translation,
    )


def _around(ids: Sequence[int], texts: list[list[int]]) -> list[tuple[int, ...]]:
    """What stands before, between and after ``texts`` in ``ids``."""
    parts: list[tuple[int, ...]] = []
    at = 0
    for text in texts:
        begin = next(i for i in range(at, len(ids)) if list(ids[i : i + len(text)]) == text)
        parts.append(tuple(ids[at:begin]))
        at = begin + len(text)
    return [*parts, tuple(ids[at:])]


def load_model(
    folder: str | Path,
    labels: Sequence[str],
    *,
    task: Literal["ner", "classification"],
    multi_label: bool = False,
    attention: Literal["eager", "sdpa"] | None = None,
    tokenizer: Any = None,
) -> LoadedModel:
    """An encoder with a head for ``labels`` (in class order), which stand in its config by name.

    The head is new unless the folder's own head has the same shape. A pickle is read with ``weights_only`` alone.
    Raises Refusal when encoder weights are missing (FT707): such a model would start from noise.
    """
    import torch
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

    folder = Path(folder)
    automatic: Any = AutoModelForTokenClassification if task == "ner" else AutoModelForSequenceClassification
    options: dict[str, Any] = {"attn_implementation": attention} if attention else {}
    if task == "classification":
        options["problem_type"] = "multi_label_classification" if multi_label else "single_label_classification"
    with _quiet():
        model, report = automatic.from_pretrained(
            str(folder),
            num_labels=len(labels),
            id2label=dict(enumerate(labels)),
            label2id={label: index for index, label in enumerate(labels)},
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            weights_only=True,
            dtype=torch.float32,
            **options,
        )
    # 5.x gives (name, shape, shape) for a mismatch, 4.57 the name.
    resized = [entry if isinstance(entry, str) else entry[0] for entry in report["mismatched_keys"]]
    new = sorted({*map(str, report["missing_keys"]), *map(str, resized)})
    _require_encoder(model, new, folder)
    if tokenizer is not None:
        check_tokenizer(tokenizer, model.get_input_embeddings().num_embeddings, where=str(folder))
    return LoadedModel(model, tuple(new), tuple(sorted(map(str, report["unexpected_keys"]))))


def _require_encoder(model: Any, new: list[str], folder: Path) -> None:
    prefix = f"{model.base_model_prefix}."
    unexpected = [name for name in new if name.startswith(prefix) and ".pooler." not in name]
    if not unexpected:
        return
    total = sum(name.startswith(prefix) for name, _parameter in model.named_parameters())
    raise Refusal(
        _(
            "{count} of the encoder's {total} weights are not in this folder, such as {name}",
            count=len(unexpected),
            total=total,
            name=unexpected[0],
        ),
        where=str(folder),
        next_step=_("The encoder would start from noise. Take config.json and weights from the same model."),
        code="FT707",
    )


@contextmanager
def _quiet() -> Generator[None]:
    """No "newly initialized" notes and bars from transformers: ``LoadedModel.new_weights`` says it, checked."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
