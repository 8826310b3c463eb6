"""Killed: the kernel's out-of-memory killer ended the process (exit code 137)

## What it says

The last line is `Killed`, or the exit code is 137 or -9; there is no traceback. A notebook says that its kernel
died.

## Why

Host memory (not the card's), or the container's memory limit, was used up.

## How to know

`dmesg` shows `Out of memory: Killed process`; `docker inspect` shows `OOMKilled: true`.

## How to fix

Use less host memory: `dataloader_num_workers=0`, no second copy of the data, `torch.load(..., mmap=True)`; or
raise the container's memory limit (`docker run -m`).

## How safe

Safe: none of it changes what is learned.

## Sources

https://docs.kernel.org/admin-guide/mm/concepts.html ; pytorch/pytorch#5902
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom

SEVERITY = "error"

SURE = (
    r"node running low on memory|exited on signal 9 \(Killed\)",
    r"low on resource: memory|oom[-_]kill(?:er|ed)?\b(?! enabled|=0)|OOM Killed"
    r"|Out of memory: Killed process|OOMKilled",
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?|returned non-zero exit status|退出码|返回码|\brc|returncode)"
    r"['\"]?\s*[:=]?\s*(?:137|-9)\b|^make.*Error 137\b",
    r"^\S*[^\n]{0,80}(?:echo \$\?|\$LASTEXITCODE)\s*\n(?:[^\n]{0,30}\n)?137\s*$|^137 true$",
    r"exitcode\s*:\s*-9|return code = -9|Signal 9 \(SIGKILL\)|\bSIGKILL\b",
    r"\bOUT_OF_ME(?:MORY|\+)|: task \d+: Out Of Memory",
    r"Exceeded (?:job|step) memory limit|job killed: \w*mem \S+ exceeded|TERM_MEMLIMIT|memory cgroup out of memory",
)
LIKELY = (
    r"^(?:zsh|sh|bash|ksh): (?:line )?(?:\d+: )?killed\b|^make\S*: \*\*\* .*\] Killed",
    r"One of the subprocesses has abruptly died during map|process pool was terminated abruptly",
    r"^\s*(?:\S+: line \d+:\s+)?(?:\[?\d+\]?\s*[+-]?\s*)?Killed(?:: 9)?\s*(?:python|nohup|torchrun|$)",
    r"^\s*\[\d+\]\s+(?:[-+]\s+)?\d+ killed\s",
    r"^\s*(?:\S+: 行 ?\d+: +)?\d* *已(?:被)?杀死",
    r"(?:it/s|s/it|\?it/s|examples/s|B/s)[^\]]*\]\s*Killed\s*$|died with <Signals\.SIGKILL",
    r"[Kk]ernel crashed while executing code",
    r"session crashed after using all available RAM|tried to allocate more memory than is available"
    r"|用完所有可用 ?RAM|内存不足.{0,6}被(?:杀|终止|kill)",
    r"kernel(?: for \S+)? appears to have died|Kernel died|DeadKernelError|内核似乎挂掉了",
)


def read(log: Log) -> Iterator[Symptom]:
    """The traces that SIGKILL leaves in a log."""
    worker = log.has(r"DataLoader worker .*killed by signal")
    if hits := log.find(*SURE):
        yield symptom(hits, confidence=0.75 if worker else 0.93)
    elif not worker and (hits := log.find(*LIKELY)):
        yield symptom(hits, confidence=0.9)
