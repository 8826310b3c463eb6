"""No NVIDIA card can be reached from here

## What it says

`Found no NVIDIA driver on your system`, `No CUDA GPUs are available`, `nvidia-smi: command not found`, or
Docker could not select a device driver.

## Why

There is no driver, the container was started without the card, the rented box is in its card-less mode, or
Slurm gave this job no card.

## How to know

`nvidia-smi` on the host works and inside the container it does not: the container lacks the card.

## How to fix

Start the container with `docker run --gpus all` (the host needs nvidia-container-toolkit), or rent or request a
machine with a card; on a machine without one, train with `use_cpu=True`.

## How safe

Safe.

## Sources

https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
PERSISTS = True
FOLLOWS = {"FT402", "FT403", "FT408", "FT419"}
TOPIC = "driver"
PATTERNS = (
    r"nvidia-container-cli: initialization error|libcuda\.so\.1: cannot open"
    r"|Failed to initialize NVML: Unknown Error",
    r"No (?:HIP|ROCm|XPU|NPU|MPS|Intel)\w* (?:GPUs?|devices?|cards?) (?:are|is) (?:available|detected|found)"
    r"|no ROCm-capable device|lib(?:hccl|ascendcl)\.so",
    r"CUDA driver initialization failed, you might not have a CUDA gpu",
    r"No supported gpu backend found|'use_cuda' set to True when cuda is unavailable",
    r"Error 802: system not yet initialized",
    r"Found no NVIDIA driver on your system",
    r"No CUDA GPUs are available",
    r"nvidia-smi: (?:command )?not found|nvidia-smi: 未找到命令|'nvidia-smi' (?:不是内部或外部命令|is not recognized)",
    r"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
    r"could not select device driver .* with capabilities: \[\[gpu\]\]",
    r"no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice",
)


def read(log: Log) -> Iterator[Symptom]:
    """No NVIDIA card can be reached from here, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)


def examine(machine: Machine) -> Iterator[Symptom]:
    """A card on the PCI bus without a driver, or a torch with CUDA without any card."""
    if machine.driver.version or machine.devices or machine.system == "macos":
        return
    reason = f" ({machine.driver.error})" if machine.driver.error else ""
    if machine.container and (machine.driver.pci_card or (machine.torch.cuda and not machine.torch.cuda_available)):
        text = _("start the container with the card; the host needs nvidia-container-toolkit")
        yield Symptom(
            evidence=(_("this {container} container sees no NVIDIA driver", container=machine.container) + reason,),
            fixes=(Fix(safety="safe", text=text, command="docker run --gpus all ..."),),
        )
    elif machine.driver.pci_card:
        text = _("install the NVIDIA driver (this needs the machine's owner), then run fitune doctor again")
        yield Symptom(
            evidence=(
                _("an NVIDIA card is on the PCI bus ({address}) and no driver answers", address=machine.driver.pci_card)
                + reason,
            ),
            fixes=(Fix(safety="display", text=text),),
        )
    elif machine.torch.cuda and machine.torch.cuda_available is False:
        yield Symptom(
            evidence=(
                _("torch {version} has CUDA, and no card is here", version=machine.torch.version or "?") + reason,
            ),
            severity="warning",
        )
    else:
        text = _(
            "training runs on the CPU; small models and TF-IDF are quick there, for the rest see fitune cards and "
            "fitune plan FILE"
        )
        yield Symptom(
            evidence=(_("no NVIDIA card here") + reason,), severity="note", fixes=(Fix(safety="display", text=text),)
        )
