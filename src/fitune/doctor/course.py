"""The course of a training as a log tells it: dictionaries, ``name: value`` lines in two languages, and tables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from fitune.doctor.history import History, Reading, keep
from fitune.doctor.log import Line, Log

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|nan|inf)(?![\w.])"
_LOSS = r"(?:avg|mean|total|batch|running|epoch|global|step)?[ _]?(?:loss|损失)"
_SCORE = (
    r"(?:(?:micro|macro|weighted|overall|entity|strict|mean|avg)?[-_ ]?f(?:1|_?score|1?-measure)"
    r"(?:[-_ ]?score)?(?: \(\w+ avg\))?"
    r"|acc(?:u|uracy)?|matthews_correlation|准确率|正确率|f1 ?值)"
)
_TRAIN, _DEV = r"train(?:ing)?|tr|训练", r"eval(?:uation)?|val(?:id(?:ation)?)?|dev(?:elopment)?|验证|开发|评估"
# In the order of the line: whose numbers follow, or a number with its name.
_TOKEN = re.compile(
    rf"(?P<own>(?:(?P<train>{_TRAIN})|(?P<dev>{_DEV})|(?P<test>test|测试))(?:[_/ -]|(?-i:(?=[A-Z\u4e00-\u9fff])))集?"
    r"(?P<of>[A-Za-z]\w*(?:[./-]\w+)*|损失|准确率)"
    rf"|(?P<loss>{_LOSS})|(?P<score>{_SCORE})|(?P<rate>learning[_ ]rate|lr|学习率))"
    rf"['\"]?(?:\s*[:=：]\s*|\s+|(?<=[\u4e00-\u9fff]))['\"]?(?:tensor\()?(?P<number>{_NUMBER})(?P<percent>\s?%)?"
    rf"|(?<![A-Za-z_])(?:(?P<to_train>{_TRAIN})|(?P<to_dev>{_DEV})|(?P<to_test>test(?:ing)?|测试))(?![A-Za-z_])",
    re.IGNORECASE,
)
_WORTH = re.compile(r"loss|损失|eval_|\bval|\bdev\b|验证|开发集", re.IGNORECASE)
_EPOCH = re.compile(r"(?:\bepochs?\b\W{0,4}|第 ?)(\d+(?:\.\d+)?)(?! ?步)", re.IGNORECASE)

_CELLS = re.compile(r"\t|[|│┃]|\s{2,}|(?<![\s,]),(?=\S)")
_WORDS = re.compile(
    r"(?:train\w*|val\w*|eval\w*|dev|test) (?:loss|acc\w*|f1)|no log|learning rate|\S+",
    re.IGNORECASE,
)
_KINDS = (
    ("loss", re.compile(r"(?:train\w*[ _]?)?loss|训练(?:集)?损失|损失", re.IGNORECASE)),
    (
        "eval_loss",
        re.compile(r"(?:val\w*|eval\w*|dev)[ _]?loss|(?:验证|开发)集?损失", re.IGNORECASE),
    ),
    ("epoch", re.compile(r"epochs?|轮次?", re.IGNORECASE)),
    ("lr", re.compile(r"lr|learning[ _]rate|学习率", re.IGNORECASE)),
    ("score", re.compile(rf"(?:val\w*|eval\w*|dev|验证集?)?[ _]?{_SCORE}", re.IGNORECASE)),
)


@dataclass(frozen=True)
class _Number:
    name: str
    """``loss`` (training), ``lr``, or ``eval_...``."""
    value: float


def history_of_log(log: Log) -> History:
    """The course of the last training in a log."""
    history, ended, table = History(log.name), False, _Table()
    for line in log.lines:
        numbers, epoch = table.row(line.text)
        if not numbers and _WORTH.search(line.text):
            if "train_runtime" in line.text:
                ended = True
                continue
            numbers = list(_numbers(line.text))
            told = _EPOCH.search(line.text)
            epoch = float(told[1]) if told else None
        if not numbers:
            continue
        before = history.losses[-1].epoch if history.losses else None
        again = epoch is not None and before is not None and epoch < before - 0.5
        if ended and not any(number.name == "loss" and epoch is not None for number in numbers):
            continue  # the summary at the end of a training
        if ended or again:
            history, ended = History(log.name), False  # another training in the same log: the last one counts
        _take(history, numbers, epoch, line, log)
    return history


def _take(history: History, numbers: list[_Number], epoch: float | None, line: Line, log: Log) -> None:
    shown = f"{log.name}:{line.number}: {line.text.strip()}"
    for number in numbers:
        reading = Reading(number.value, epoch, None, line.number, shown)
        if number.name == "loss":
            history.losses.append(reading)
        elif number.name == "lr":
            history.learning_rates.append(reading)
        else:
            keep(history, number.name, reading)


def _numbers(text: str) -> Iterator[_Number]:
    """Of each name the first; what stands behind "dev" or 验证 is the development set's until "train" comes."""
    role, told = "train", set[str]()
    for token in _TOKEN.finditer(text):
        if token["number"] is None:
            role = "train" if token["to_train"] else "dev" if token["to_dev"] else "test"
            continue
        value = float(token["number"]) / (100 if token["percent"] else 1)
        own = "train" if token["train"] else "dev" if token["dev"] else "test" if token["test"] else role
        of = (token["of"] or token["loss"] or token["score"] or "").lower()
        name = ""
        if token["rate"]:
            name = "lr"
        elif own == "dev" and of:
            name = "eval_loss" if re.search(r"loss|损失", of) else f"eval_{_score_name(of)}"
        elif own == "train" and re.search(r"loss$|损失", of):
            name = "loss"
        if name and name not in told:
            told.add(name)
            yield _Number(name, value)


def _score_name(of: str) -> str:
    return "accuracy" if re.search(r"准确率|正确率|^acc(?:u|uracy)?$", of) else of.strip()


class _Table:
    """A table whose header names a loss: a notebook's, a model card's, fastai's, a drawn one."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def row(self, text: str) -> tuple[list[_Number], float | None]:
        """The numbers of a row below the header, and its epoch."""
        if not self.names and "loss" not in text.lower() and "损失" not in text:
            return [], None
        for cells in _ways(text):
            kinds = [_kind(cell) for cell in cells]
            if len(cells) >= 2 and ("loss" in kinds or "eval_loss" in kinds) and not any(map(_value, cells)):
                self.names = kinds
                return [], None
            if self.names and len(cells) == len(self.names):
                return self._read(cells)
        return [], None

    def _read(self, cells: list[str]) -> tuple[list[_Number], float | None]:
        numbers: dict[str, float] = {}
        for name, cell in zip(self.names, cells, strict=True):
            value = _value(cell)
            if name and value is not None:
                numbers.setdefault(name, value)
            elif name and cell.lower() not in {"no log", "-", "none"}:
                return [], None
        epoch = numbers.pop("epoch", None)
        return [_Number(name, value) for name, value in numbers.items()], epoch


def _kind(cell: str) -> str:
    """What a header's cell says stands below it; empty: nothing of interest."""
    kind = next((kind for kind, shape in _KINDS if shape.fullmatch(cell)), "")
    return f"eval_{_score_name(cell.lower())}" if kind == "score" else kind


def _ways(text: str) -> Iterator[list[str]]:
    """The cells of a line: divided by tabs, rules or wide gaps, else word by word."""
    yield [cell.strip() for cell in _CELLS.split(text.strip().strip("|│┃")) if cell.strip()]
    if len(text) < 200 and not re.search(r"[|│┃:=]", text):
        yield _WORDS.findall(text)


def _value(cell: str) -> float | None:
    try:
        value = float(cell.removesuffix("%"))
    except ValueError:
        return None
    return value / 100 if cell.endswith("%") and math.isfinite(value) else value
