"""transformers' reports of weights that a checkpoint lacks or has in excess: the words of 4.x, the table of 5.x."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fitune.doctor.log import Hit, Line, Log

# Names that belong to a head: new for every task, so that their absence is expected.
_HEAD = re.compile(
    r"^(?:\w+\.)?(?:classifier|score|cls|pooler|crf|qa_outputs|lm_head|head|out_proj|pre_classifier|lstm|bilstm|bi_lstm"
    r"|gru|fc\d?|linear|dense|dropout|hidden2tag|span_\w+|start_fc|end_fc|sop_classifier|discriminator_predictions"
    r"|generator_\w+|generator|predictions|seq_relationship)(?:[._]|\d|$)"
    r"|position_ids|token_type_ids|num_batches_tracked|pooler|transitions"
)
_ENCODER = re.compile(
    r"embeddings\.|encoder\.|layers?\.\d|layer\.\d|attention\.|wte|wpe|\.layers\.|encoder\.layer|word_embeddings"
)


@dataclass(frozen=True)
class LoadReport:
    """What was not loaded."""

    hits: list[Hit]
    encoder_names: tuple[str, ...]
    """Weights of the encoder that were missing or unused."""


def is_encoder_weight(name: str) -> bool:
    """Whether a parameter's name belongs to the encoder rather than to a head."""
    return bool(_ENCODER.search(name)) and not _HEAD.search(name)


def vocabulary_differs(log: Log) -> list[Hit]:
    """Lines in which the word embeddings have another number of rows in the checkpoint than in the model."""
    hits = log.find(
        r"size mismatch for (?:\S+\.)?(?:word_embeddings|embed_tokens|wte|tok_embeddings|shared)\.weight",
        r"(?:word_embeddings|embed_tokens|wte|tok_embeddings|shared)\.weight\s*(?:\||: found shape)"
        r".*(?:torch\.Size|mismatch)",
    )
    return [
        hit
        for hit in hits
        if len(rows := re.findall(r"torch\.Size\(\[(\d+), \d+\]\)", _with_next(log, hit.line))) >= 2
        and rows[0] != rows[1]
    ]


def _with_next(log: Log, line: Line) -> str:
    position = log.lines.index(line)
    return " ".join(other.text for other in log.lines[position : position + 2])


def find_load_report(log: Log) -> LoadReport | None:
    """The log's loading report; None when there is none."""
    hits = log.find(
        r"Some weights (?:of|are|were)\b.*(?:not (?:initialized|used)|newly initialized|$)",
        r"LOAD REPORT",
        r"(?:MISSING|UNEXPECTED)\s*\|",
        r"weights .* were not used when initializing",
        r"You should probably TRAIN this model",
    )
    hits = [hit for hit in hits if not re.search(r"shapes did not match", hit.line.text)]
    if not hits:
        return None
    names: list[str] = []
    for hit in hits:
        position = log.lines.index(hit.line)
        # A 4.x report may put its list on the following lines.
        text = " ".join(line.text for line in log.lines[position : position + 3])
        if "Some weights" in hit.line.text:
            listed = re.search(r"\[(.*?)(?:\]|$)", text)
            names += re.findall(r"'([\w.{}*, -]+)'", listed[1]) if listed else []
        elif row := re.match(r"\s*([\w.{}*, -]+?)\s*\|\s*(?:MISSING|UNEXPECTED)", hit.line.text):
            names.append(row[1].strip())
    return LoadReport(hits, tuple(name for name in names if is_encoder_weight(name)))
