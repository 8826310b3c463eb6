"""No more threads or processes may be started

## What it says

`libgomp: Thread creation failed`, `OpenBLAS blas_thread_init: pthread_create failed`, `can't start new thread`,
`fork: retry: Resource temporarily unavailable`.

## Why

A shared machine or a container limits how many processes and threads one user may have; every library starts
one thread per core, in every worker.

## How to know

`ulimit -u` prints the limit, `ps -u $USER -L | wc -l` how many you have; in a container see the cgroup's
`pids.max`.

## How to fix

Type `export OMP_NUM_THREADS=4 OPENBLAS_NUM_THREADS=4 TOKENIZERS_PARALLELISM=false` before the command and set
`dataloader_num_workers=0`; end programs of yours that were left behind; a container is started with
`--pids-limit=-1`.

## How safe

Safe: nothing that is learned changes.

## Sources

https://man7.org/linux/man-pages/man2/getrlimit.2.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"libgomp: Thread creation failed|pthread_create failed|OMP: Error #34|can't start new thread",
    r"fork: (?:retry: )?(?:Resource temporarily unavailable|Cannot allocate memory"
    r"|资源暂时不可用)|BlockingIOError: \[Errno 11\]",
    r"thread constructor failed: Resource temporarily unavailable|failed to spawn thread",
)


def read(log: Log) -> Iterator[Symptom]:
    """No more threads or processes may be started, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.94)
