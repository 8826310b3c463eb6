"""Engines: what runs the model's forward pass. Tokenizer, windows, decoding and thresholds are the same for all.

An engine gives the Learner that ``tasks.score`` asks for logits; ONNX Runtime and CTranslate2 stand behind a module
with the face of a Hugging Face model, so nothing else has to know.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from fitune.hf import CannotPack, load_tokenizer
from fitune.messages import _
from fitune.tasks import Learner, LinearChainCrf, SavedModel, load, read_settings
from fitune.tasks.saved import CRF_FILE, verify_files
from fitune.values import Refusal

__all__ = ["ENGINES", "FORMATS", "load_engine"]

ENGINES = {
    "torch": "model.safetensors",
    "onnx": "model.onnx",
    "ctranslate2": "ctranslate2/model.bin",
    "onnx-int8": "model_int8.onnx",
    "ctranslate2-int8": "ctranslate2-int8/model.bin",
}
"""Engine -> the file that its folder must hold."""

FORMATS = ("onnx", "ctranslate2")
"""What ``fitune export`` writes, each into a folder of this name in the run's directory."""


def load_engine(folder: Path, engine: str, device: str | None = None) -> SavedModel:
    """A trained model whose learner runs on ``engine``.

    Raises:
        Refusal: a file is missing or damaged (it is named); ONNX Runtime is not installed.
    """
    if engine == "torch":
        return _on_torch(folder, device or ("cuda" if torch.cuda.is_available() else "cpu"))
    settings = read_settings(folder)
    verify_files(folder, settings)
    crf = None
    if settings.head == "crf":
        crf = LinearChainCrf(settings.make_task().classes)
        crf.load_state_dict(load_file(folder / CRF_FILE))
    if engine.startswith("ctranslate2"):
        from fitune.predicting.ctranslate import CtranslateModel

        precision = "int8" if engine.endswith("-int8") else "float32"
        model: nn.Module = CtranslateModel(folder, precision, of_tokens=settings.task == "ner")
    else:
        model = OnnxModel(folder / ENGINES[engine])
    learner = Learner(model, crf=crf, multi_label=settings.multi_label).eval()
    return SavedModel(settings, settings.make_task(), learner, load_tokenizer(folder, lowercase=settings.lowercase))


def _on_torch(folder: Path, device: str) -> SavedModel:
    """On CPU without padding, which is the faster way there; a model that cannot is padded."""
    saved = load(folder, device=device)
    if torch.device(device).type == "cpu":
        with suppress(CannotPack):
            saved.learner.run_packed()
    return saved


class OnnxModel(nn.Module):
    """An ONNX file with the face of a Hugging Face model: keyword tensors in, ``.logits`` out."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        session: Any = open_session(path)
        self._session = session
        self._names = [entry.name for entry in session.get_inputs()]
        # The learner's device is read off its parameters; this one stands for "the CPU".
        self._place = nn.Parameter(torch.zeros(0), requires_grad=False)

    def forward(self, **inputs: Tensor) -> SimpleNamespace:
        """Logits (B, L, C) or (B, C), fp32."""
        present = dict(inputs)
        if "token_type_ids" in self._names and "token_type_ids" not in present:
            present["token_type_ids"] = torch.zeros_like(present["input_ids"])
        feed = {name: present[name].cpu().numpy() for name in self._names}
        (logits,) = self._session.run(["logits"], feed)
        return SimpleNamespace(logits=torch.from_numpy(logits))


def open_session(path: Path) -> Any:
    """An ONNX Runtime session on the CPU, on as many threads as torch uses."""
    try:
        import onnxruntime
    except ImportError as error:
        raise Refusal(
            _("ONNX Runtime is not installed"),
            where=str(path),
            next_step='pip install "fitune[export]"',
            code="FT712",
        ) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime raises types of its own, without a common base
        raise Refusal(
            _("ONNX Runtime cannot read it: {error}", error=str(error).splitlines()[0]),
            where=str(path),
            next_step=_("Export the model again."),
            code="FT709",
        ) from error
