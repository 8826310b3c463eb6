"""Encoders for Chinese that are worth naming: what ``fitune models`` lists and ``--model`` knows by a short name."""

from dataclasses import dataclass

__all__ = ["KNOWN", "KnownModel", "repository_of"]


@dataclass(frozen=True, slots=True)
class KnownModel:
    """An encoder on the model hub."""

    name: str
    """What the user types."""
    repository: str
    """owner/name on the hub."""
    parameters: int
    """As the makers publish it, rounded to millions."""
    source: str
    """Where the figure is published."""


_WWM = "https://github.com/ymcui/Chinese-BERT-wwm"
_MACBERT = "https://github.com/ymcui/MacBERT"
_ELECTRA = "https://github.com/ymcui/Chinese-ELECTRA"
_LERT = "https://github.com/ymcui/LERT"

KNOWN: tuple[KnownModel, ...] = (
    KnownModel("bert-base-chinese", "google-bert/bert-base-chinese", 102_000_000, _WWM),
    KnownModel("chinese-roberta-wwm-ext", "hfl/chinese-roberta-wwm-ext", 102_000_000, _WWM),
    KnownModel("chinese-roberta-wwm-ext-large", "hfl/chinese-roberta-wwm-ext-large", 325_000_000, _WWM),
    KnownModel("rbt3", "hfl/rbt3", 38_000_000, _WWM),
    KnownModel("chinese-macbert-base", "hfl/chinese-macbert-base", 102_000_000, _MACBERT),
    KnownModel("chinese-macbert-large", "hfl/chinese-macbert-large", 324_000_000, _MACBERT),
    KnownModel(
        "chinese-electra-180g-base-discriminator",
        "hfl/chinese-electra-180g-base-discriminator",
        102_000_000,
        _ELECTRA,
    ),
    KnownModel(
        "chinese-electra-180g-small-discriminator",
        "hfl/chinese-electra-180g-small-discriminator",
        12_000_000,
        _ELECTRA,
    ),
    KnownModel("chinese-lert-base", "hfl/chinese-lert-base", 102_000_000, _LERT),
    KnownModel("chinese-lert-small", "hfl/chinese-lert-small", 15_000_000, _LERT),
)


def repository_of(name: str) -> str:
    """owner/name of a short name; any other name is its own repository."""
    return next((known.repository for known in KNOWN if known.name == name), name)
