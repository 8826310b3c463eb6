"""CTranslate2 as an engine: a BERT encoder converted to its format, in fp32 or int8, with the model's own head behind.

The encoder works without padding and its weights are laid out for the CPU once. Only models of type "bert" are
converted (bert-base-chinese, chinese-roberta-wwm-ext, MacBERT and the embedded encoder are that type).

Legend: B windows, L the longest, H hidden, C classes.
"""

from __future__ import annotations

import json
import tempfile
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from fitune.hf import no_bars
from fitune.messages import _
from fitune.tasks import SavedModel
from fitune.values import Refusal

__all__ = ["HEAD_FILE", "CtranslateModel", "convert"]

HEAD_FILE = "head.safetensors"
"""The last linear layer of the model: ``weight`` (C, H) and ``bias`` (C,)."""


def convert(saved: SavedModel, folder: Path, precisions: tuple[str, ...]) -> None:
    """Write ``folder/<name>`` for every precision ("float32", "int8") and the head beside them.

    Raises:
        Refusal: ctranslate2 is not installed, or the model is of a type that is not converted.
    """
    model: Any = saved.learner.model
    if model.config.model_type != "bert":
        raise Refusal(
            _("models of type {name} are not converted to CTranslate2", name=model.config.model_type),
            where=str(folder),
            next_step="fitune export RUN --to onnx",
            code="FT716",
        )
    ctranslate2 = _ctranslate2(folder)
    save_file(
        {"weight": model.classifier.weight.detach().contiguous(), "bias": model.classifier.bias.detach().contiguous()},
        folder / HEAD_FILE,
    )
    with tempfile.TemporaryDirectory(dir=folder) as name, no_bars():
        source = Path(name)
        _write_encoder(saved, source)
        for precision in precisions:
            converter = ctranslate2.converters.TransformersConverter(str(source))
            converter.convert(
                str(folder / folder_of(precision)), quantization=None if precision == "float32" else precision
            )


def folder_of(precision: str) -> str:
    """Where the files of a precision lie inside an exported folder."""
    return "ctranslate2" if precision == "float32" else f"ctranslate2-{precision}"


def _write_encoder(saved: SavedModel, source: Path) -> None:
    """The encoder and its tokenizer as the converter reads them."""
    from transformers import BertModel

    model: Any = saved.learner.model
    # With a pooler whatever the head: the converter asks for one. Sequence classifiers bring theirs.
    whole = BertModel(model.config)
    whole.load_state_dict(model.bert.state_dict(), strict=False)
    whole.save_pretrained(source)
    saved.tokenizer.save_pretrained(source)
    path = source / "config.json"
    plain = json.loads(path.read_text(encoding="utf-8"))
    # transformers 5 has no other kind and no longer says so; ctranslate2 4.8 asks.
    plain["position_embedding_type"] = "absolute"
    path.write_text(json.dumps(plain), encoding="utf-8")


def _ctranslate2(where: Path) -> Any:
    if find_spec("ctranslate2") is None:
        raise Refusal(
            _("CTranslate2 is not installed"),
            where=str(where),
            next_step='pip install "fitune[ctranslate2]"',
            code="FT712",
        )
    import ctranslate2

    return ctranslate2


class CtranslateModel(nn.Module):
    """A converted encoder and its head with the face of a Hugging Face model: keyword tensors in, ``.logits`` out."""

    def __init__(self, folder: Path, precision: str, *, of_tokens: bool) -> None:
        super().__init__()
        self._library = _ctranslate2(folder)
        try:
            self._encoder: Any = self._library.Encoder(
                str(folder / folder_of(precision)),
                device="cpu",
                compute_type=precision,
                inter_threads=1,
                intra_threads=torch.get_num_threads(),
            )
            head = load_file(folder / HEAD_FILE)
        except (RuntimeError, ValueError, OSError) as error:
            raise Refusal(
                _("CTranslate2 cannot read it: {error}", error=str(error).splitlines()[0]),
                where=str(folder),
                next_step=_("Export the model again."),
                code="FT709",
            ) from error
        self._of_tokens = of_tokens
        self.weight = nn.Parameter(head["weight"], requires_grad=False)
        self.bias = nn.Parameter(head["bias"], requires_grad=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **inputs: Tensor) -> SimpleNamespace:
        """Logits (B, L, C) or (B, C), fp32."""
        view = self._library.StorageView.from_array
        arguments: dict[str, Any] = {"lengths": view(_int32(attention_mask.sum(1)))}
        if "token_type_ids" in inputs:
            # Lists of the rows' own lengths: as ids would be given.
            lengths = attention_mask.sum(1).tolist()
            rows = inputs["token_type_ids"].tolist()
            arguments["token_type_ids"] = [row[:length] for row, length in zip(rows, lengths, strict=True)]
        found = self._encoder.forward_batch(view(_int32(input_ids)), **arguments)
        features = np.array(found.last_hidden_state if self._of_tokens else found.pooler_output, copy=True)
        return SimpleNamespace(logits=functional.linear(torch.from_numpy(features), self.weight, self.bias))


def _int32(tensor: Tensor) -> Any:
    return np.ascontiguousarray(tensor.cpu().numpy(), np.int32)
