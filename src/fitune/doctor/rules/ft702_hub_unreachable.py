"""The model hub cannot be reached from here

## What it says

`We couldn't connect to 'https://huggingface.co' to load this file`, `Max retries exceeded`, `Name or service
not known`, `[Errno 101] Network is unreachable`.

## Why

huggingface.co is blocked or slow from many networks, the machine has no internet, or offline mode is on without
the file in the cache.

## How to know

`fitune doctor` asks the hub and the known mirrors and says which answers.

## How to fix

Set a mirror before Python starts (`export HF_ENDPOINT=https://hf-mirror.com`), or copy the model's folder over
and give its path: `--model /path/to/folder`. `--model embedded` needs no hub.

## How safe

Safe.

## Sources

padeoe/hf-mirror-site#16 ; caoyunkang/Segment-Any-Anomaly#29 ; deepseek-ai/DeepSeek-OCR#105
"""

import ast
import re
from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.raised import went_on
from fitune.doctor.script import Script
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
FOLLOWS = {"FT720"}
TOPIC = "network"
SAFETY = "safe"
COMMAND = "export HF_ENDPOINT=https://hf-mirror.com"

PATTERNS = (
    r"MissingSchema: Invalid URL '(?:hf|huggingface)",
    r"Data processing error: I/O error: Connection",
    r"unable to resolve host address|Could not resolve host|Failed to connect to (?:huggingface|hf-mirror"
    r"|www\.modelscope|modelscope)|unable to access 'https?://(?:huggingface|hf-mirror)",
    r"50[0-9] Server Error[^\n]*(?:huggingface\.co|hf\.co)|CAS service error|ReqwestMiddleware"
    r"|Error while (?:downloading|uploading) .*(?:hf|xet)",
    r"ConnectionResetError\(1005[34]|\[WinError 1005[34]\]|\('Connection aborted\.'"
    r"|urllib3\.exceptions\.ProtocolError|RemoteDisconnected|ConnectionRefusedError",
    r"(?:ModelScope|modelscope)\S*.*(?:Max retries exceeded|timed out|ConnectionError)|URLError: <urlopen error"
    r"|Errno 101\]|(?:\[Errno -[235]\]|\[Errno 11001\])",
    r"couldn'?t connect to '?https?://(?:huggingface\.co|hf-mirror)",
    (
        r"(?:huggingface\.co|cdn-lfs|hf\.co).*(?:Max retries exceeded|timed out|Read timed out"
        r"|NewConnectionError|ConnectTimeout|Connection reset)"
    ),
    r"Max retries exceeded with url: /(?!api/(?:wandb|graphql))\S*(?:resolve|api/models|api/datasets)",
    r"LocalEntryNotFoundError|OfflineModeIsEnabled|offline mode is enabled|outgoing traffic has been disabled",
    (
        r"(?:requests\.exceptions|httpx|urllib3\.exceptions|httpcore)\.(?:ConnectionError|ChunkedEncodingError"
        r"|ConnectTimeout|ReadTimeout|ConnectError|NewConnectionError|MaxRetryError)"
    ),
    r"IncompleteRead\(\d+ bytes read",
    r"Connection(?:Error)?: Couldn'?t reach (?:'?\S+'? on the Hub|https?://)",
    (
        r"(?:getaddrinfo failed|Name or service not known|Temporary failure in name resolution"
        r"|Network is unreachable|由于目标计算机积极拒绝)"
    ),
)
BARE = r"Connection(?:Reset|Aborted)Error|\[Errno (?:104|110|111)\]"
"""Says nothing of where to; the frames above it do."""
HUB_FRAMES = r"huggingface_hub|hf_hub|modelscope|from_pretrained\(|load_dataset\(|snapshot_download"
GOES_ON = r"'?loss'?\s*[:=：]|\bepoch\b|损失|it/s[\],]|Training completed|训练完成"


def read(log: Log) -> Iterator[Symptom]:
    """Connection errors; only a note when the program got over them, and none when it was a logger's network."""
    hits = [
        hit
        for hit in log.find(*PATTERNS, *((BARE,) if log.has(HUB_FRAMES) else ()))
        if not re.search(r"wandb|tensorboard|comet|mlflow|neptune", hit.line.text, re.IGNORECASE)
    ]
    if not hits:
        return
    last = hits[-1].line.number
    over = went_on(log, last) or (log.has(GOES_ON) and not log.in_last_traceback(last))
    yield symptom(hits, confidence=0.5 if over else 0.92, severity="note" if over else None)


def check(script: Script) -> Iterator[Symptom]:
    """HF_ENDPOINT set behind the imports that read it."""
    users = [
        node
        for node in script.tree.body
        if re.match(r"(?:from|import) (?:transformers|datasets|huggingface_hub|evaluate)\b", script.source(node))
    ]
    for node in script.tree.body:
        if not isinstance(node, ast.Assign) or not re.match(r"os\.environ\[['\"]HF_ENDPOINT", script.source(node)):
            continue
        if users and users[0].lineno < node.lineno and isinstance(node.value, ast.Constant):
            edits = [
                script.insert_before(users[0], f"import os\n\n{script.source(node)}"),
                script.delete_statement(node),
            ]
            title = _("HF_ENDPOINT is set after the libraries that read it were imported: it has no effect")
            yield script.symptom(node, edits=edits, title=title, severity="warning")


def examine(machine: Machine) -> Iterator[Symptom]:
    """Which of hub and mirrors answers."""
    asked = machine.endpoints
    if not asked or any(e.answers for e in asked if e.name in {"huggingface.co", "HF_ENDPOINT"}):
        return
    evidence = tuple(f"{e.name}: {e.error or e.status}" for e in asked if not e.answers)
    mirror = next((e for e in asked if e.answers and e.name == "hf-mirror.com"), None)
    if mirror is not None:
        fix = Fix(
            safety="safe", text=_("hf-mirror.com answers: use it"), command="export HF_ENDPOINT=https://hf-mirror.com"
        )
    elif any(e.answers and e.name == "modelscope.cn" for e in asked):
        fix = Fix(
            safety="safe",
            text=_("modelscope.cn answers: download the folder there and give its path"),
            command=(
                "pip install modelscope && modelscope download tiansz/bert-base-chinese --local_dir bert-base-chinese"
            ),
        )
    else:
        fix = Fix(
            safety="safe",
            text=_(
                "neither hub nor mirrors answer: copy the model's folder here and give its path, or use "
                "--model embedded"
            ),
            command="fitune train FILE --model /path/to/folder",
        )
    yield Symptom(evidence=evidence, severity="warning", fixes=(fix,))
