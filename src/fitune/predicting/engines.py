"""Engines: what runs the model's forward pass. Tokenizer, windows, decoding and thresholds are the same for all.

An engine gives the Learner that ``tasks.score`` asks for logits; ONNX Runtime stands behind a module with the face of
a Hugging Face model, so nothing else has to know.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from fitune.hf import load_tokenizer
from fitune.messages import _
from fitune.tasks import Learner, LinearChainCrf, SavedModel, load, read_settings
from fitune.tasks.saved import CRF_FILE, verify_files
from fitune.values import Refusal

__all__ = ["ENGINES", "choose_engine", "load_engine"]

ENGINES = {"torch": "model.safetensors", "onnx": "model.onnx", "onnx-int8": "model_int8.onnx"}
"""Engine -> the file that its folder must hold."""


def choose_engine(folder: Path, wanted: str | None) -> str:
    """The engine asked for, or the first whose file is there.

    Raises:
        Refusal: an unknown engine, or one whose file is not in the folder.
    """
    if wanted is not None and wanted not in ENGINES:
        raise Refusal(
            _("there is no engine {name}", name=wanted),
            where="--engine",
            next_step=_("There are: {names}", names=", ".join(ENGINES)),
        )
    here = [name for name, file in ENGINES.items() if (folder / file).is_file()]
    if wanted is None and here:
        return here[0]
    if wanted is not None and wanted in here:
        return wanted
    if wanted is None or wanted == "torch":
        return "torch"  # loading says which file is missing
    raise Refusal(
        _("the folder holds no {file}", file=ENGINES[wanted]),
        where=str(folder),
        next_step=_("Make it: fitune export RUN --to onnx{int8}", int8=" --int8" if wanted == "onnx-int8" else ""),
        code="FT711",
    )


def load_engine(folder: Path, engine: str, device: str | None = None) -> SavedModel:
    """A trained model whose learner runs on ``engine``.

    Raises:
        Refusal: a file is missing or damaged (it is named); ONNX Runtime is not installed.
    """
    if engine == "torch":
        return load(folder, device=device or ("cuda" if torch.cuda.is_available() else "cpu"))
    settings = read_settings(folder)
    verify_files(folder, settings)
    crf = None
    if settings.head == "crf":
        crf = LinearChainCrf(settings.make_task().classes)
        crf.load_state_dict(load_file(folder / CRF_FILE))
    model = OnnxModel(folder / ENGINES[engine])
    learner = Learner(model, crf=crf, multi_label=settings.multi_label).eval()
    return SavedModel(settings, settings.make_task(), learner, load_tokenizer(folder, lowercase=settings.lowercase))


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
