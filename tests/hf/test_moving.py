"""One way to the device: pinned on a card, nothing copied on a CPU, and nothing read back inside a step."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import BertConfig, BertForSequenceClassification, BertForTokenClassification, ModernBertConfig
from transformers import ModernBertForTokenClassification as ModernBert

from fitune.hf import Columns, Step, to_device, with_ready_mask
from fitune.hf.compat import takes_ready_mask
from fitune.microbatch import Budget, Stepper
from fitune.tasks import Learner, LinearChainCrf

CUDA, CPU = torch.device("cuda"), torch.device("cpu")
LABELS = ("O", "B-X", "I-X")


def model_of(kind: Any = BertForTokenClassification, attention: str = "sdpa", **changes: Any) -> Any:
    torch.manual_seed(0)
    fields: dict[str, Any] = {
        "vocab_size": 50,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 64,
        "num_labels": 3,
        "attn_implementation": attention,
    }
    config = ModernBertConfig if kind is ModernBert else BertConfig
    return kind(config(**fields | changes))


def columns_of(equal: bool = False) -> Columns:
    draw = np.random.default_rng(0)
    lengths = np.full(16, 12) if equal else draw.integers(5, 40, 16)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Columns(
        ids_T=draw.integers(1, 50, starts[-1]).astype(np.int32),
        starts_W1=starts,
        example_starts_E1=np.arange(17),
        pad_id=0,
        token_labels_T=draw.integers(0, 3, starts[-1]).astype(np.int16),
        weights_W=lengths.astype(float),
    )


class Reads(TorchDispatchMode):
    """Counts what would keep the host waiting for a card: a value that Python reads, a shape that depends on values."""

    names = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal")

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if any(name.startswith(read) for read in self.names):
            self.found.append(name)
        return func(*args, **(kwargs or {}))


def reads_of(learner: Learner, *, ready: bool = True, equal: bool = False) -> tuple[int, int]:
    """Values read while a step runs, and the step's passes."""

    def loss_sum(batch: dict[str, Tensor]) -> Tensor:
        inputs = with_ready_mask(learner.model, batch, CUDA) if ready else learner.pack(batch)
        return learner(**to_device(inputs, CPU))[0]

    step = Step(columns_of(equal), np.arange(16))
    stepper = Stepper(loss_sum, learner.train(), budget=Budget(tokens=160))
    with Reads() as reads:
        result = stepper.run(step)
    return len(reads.found), result.passes


def test_nothing_is_copied_on_a_cpu() -> None:
    batch: dict[str, Any] = columns_of().collate(np.arange(4)) | {"other": "text"}
    moved = to_device(batch, CPU)
    assert all(moved[name] is value for name, value in batch.items())
    model = model_of()
    assert with_ready_mask(model, batch, CPU) is batch


def test_each_tensor_goes_to_a_card_pinned_and_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned, moves = [], []

    def pin(tensor: Tensor) -> Tensor:
        pinned.append(tensor)
        return tensor

    def to(tensor: Tensor, device: torch.device, non_blocking: bool = False) -> Tensor:
        moves.append((device.type, non_blocking))
        return tensor

    batch = columns_of().collate(np.arange(4))
    monkeypatch.setattr(Tensor, "pin_memory", pin)
    monkeypatch.setattr(Tensor, "to", to)
    to_device({**batch, "other": None}, CUDA)
    assert [id(tensor) for tensor in pinned] == [id(tensor) for tensor in batch.values()]
    assert moves == [("cuda", True)] * len(batch)


@pytest.mark.parametrize("equal", [False, True], ids=["padded", "without padding"])
def test_a_ready_mask_gives_the_same_bits(equal: bool) -> None:
    model = model_of().eval()
    if not takes_ready_mask(model):
        pytest.skip("this version of transformers makes its mask otherwise")
    batch = columns_of(equal).collate(np.arange(8))
    del batch["labels"]
    ready = with_ready_mask(model, batch, CUDA)
    assert (ready["attention_mask"] is None) == equal
    with torch.no_grad():
        assert torch.equal(model(**batch).logits, model(**ready).logits)


def test_a_model_that_would_misread_a_ready_mask_keeps_its_own() -> None:
    plain = columns_of().collate(np.arange(4))
    sliding = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
    for model in (model_of(attention="eager"), model_of(ModernBert, **sliding)):
        assert with_ready_mask(model, plain, CUDA) is plain


@pytest.mark.parametrize("equal", [False, True], ids=["padded", "without padding"])
def test_nothing_is_read_back_inside_a_padded_step(equal: bool) -> None:
    learner = Learner(model_of())
    if not takes_ready_mask(learner.model):
        pytest.skip("this version of transformers looks into its mask")
    reads, passes = reads_of(learner, equal=equal)
    assert passes > 1
    assert reads == 0
    # The test can fail: without a ready mask the model looks once a pass.
    assert reads_of(learner, ready=False, equal=equal) == (passes, passes)


@pytest.mark.parametrize("kind", [BertForTokenClassification, BertForSequenceClassification])
def test_nothing_is_read_back_inside_a_packed_step(kind: Any) -> None:
    learner = Learner(model_of(kind))
    if not takes_ready_mask(learner.model):
        pytest.skip("this version of transformers makes a mask and looks into it")
    learner.run_packed()
    if kind is BertForSequenceClassification:
        learner.window_losses = lambda logits, labels, weights: logits.sum(1)
    assert reads_of(learner, ready=False)[0] == 0


def test_a_crf_reads_one_number_a_pass() -> None:
    learner = Learner(model_of(), crf=LinearChainCrf(LABELS))
    looks = not takes_ready_mask(learner.model)
    learner.run_packed()
    reads, passes = reads_of(learner, ready=False)
    assert reads > passes if looks else reads == passes
