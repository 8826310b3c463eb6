"""NCCL: the cards stopped talking to each other

## What it says

`Watchdog caught collective operation timeout`, `ncclSystemError`, `NCCL error`, or a rendezvous that timed out.

## Why

One rank died or lags (out of memory, another number of batches, a long evaluation on rank 0 alone), or the
network or peer-to-peer access between cards is broken.

## How to know

Look for the first rank with another exception: that is the cause, the time-outs of the others follow from it.

## How to fix

Mend the first rank's error; when there is none, try one card (`CUDA_VISIBLE_DEVICES=0`), then
`NCCL_P2P_DISABLE=1`.

## How safe

Safe; one card takes longer.

## Sources

https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"

PATTERNS = (
    r"failed to pass monitoredBarrier|peer access is not supported between these two devices",
    r"Timed out after \d+ seconds waiting for clients|client socket has failed to connect|DistStoreError",
    r"connectFullMesh failed|HeartbeatMonitor|heartbeat monitor timed out|store->get\(|RendezvousClosedError"
    r"|Socket Timeout$",
    r"wait timeout after \d+ms|HCCL function error|ProcessGroupHCCL|HcclAllreduce|EI000\d:",
    r"caught collective operation timeout|Some NCCL operations have failed or timed out",
    r"ncclUnhandledCudaError|ncclSystemError|ncclInternalError|ncclRemoteError|ncclInvalidUsage|NCCL error in",
    (
        r"Timed out initializing process group|The client socket has timed out"
        r"|RendezvousTimeoutError|RendezvousConnectionError"
    ),
    r"gloo/transport\S+\] (?:Connection closed|Timed out)",
    r"Connection closed by (?:remote )?peer.*NCCL|NCCL.*(?:remote process exited|timeout)",
)
OTHER = (
    r"out of memory|Killed process|SIGKILL|device-side assert|KeyError|IndexError|ValueError"
    r"|No space left|FileNotFoundError"
)


def read(log: Log) -> Iterator[Symptom]:
    """Time-outs and failures of collectives; less sure when another rank shows an error of its own."""
    if hits := log.find(r"doesn't have NCCL built in|NCCL (?:backend )?is not (?:available|supported)"):
        text = _("Windows and CPU wheels have no NCCL: run on one card without torchrun, or use the backend gloo")
        title = _("This PyTorch has no NCCL")
        yield symptom(hits, confidence=0.95, title=title, fixes=(Fix(safety="safe", text=text),))
    elif hits := log.find(*PATTERNS):
        yield symptom(hits, confidence=0.5 if log.has(OTHER) else 0.93)
