"""The job's time was up: the scheduler ended it

## What it says

`CANCELLED AT ... DUE TO TIME LIMIT`, `DUE TO PREEMPTION`, `job killed: walltime exceeded`, `DeadlineExceeded`.

## Why

Slurm, PBS, Kubernetes or a rented box ends a job when its time is up, or when another job needs the card.

## How to know

`sacct -j JOBID --format=State,Elapsed,Timelimit` (Slurm).

## How to fix

Ask for more time (`sbatch --time=12:00:00`), or let fitune stop in time and go on later: `fitune train FILE
--max-hours 3.8`, then type the same command again.

## How safe

Safe: the steps since the last checkpoint are repeated.

## Sources

https://slurm.schedmd.com/sbatch.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"Runtime disconnected|disconnected due to inactivity|reaching its maximum duration|Exceeded Allowed Compute",
    r"exceeded execution time limit|got signal: 15|Received Signals\.SIGTERM",
    r"DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE)|CANCELLED AT .* DUE TO",
    r"walltime \d*\s*exceeded|exceeded (?:its )?(?:walltime|time limit|deadline)"
    r"|walltime .* exceeded limit|DeadlineExceeded",
    r"TERM_RUNLIMIT|spot instance (?:was )?(?:interrupted|terminated)|Instance is being preempted",
)


def read(log: Log) -> Iterator[Symptom]:
    """The job's time was up: the scheduler ended it, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.94)
