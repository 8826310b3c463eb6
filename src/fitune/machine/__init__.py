"""This machine as fine-tuning sees it: driver, CUDA, torch build (asked in a child), cards, who uses them. No torch."""

from fitune.machine.cuda import (
    CPU_PIP_COMMAND,
    Wheel,
    arch_list_runs_on,
    checked_on,
    choose_wheel,
    decode_cuda_number,
    driver_for_cuda,
    newest_cuda_of_driver,
    parse_version,
    runs_cuda,
    wheels,
)
from fitune.machine.probing import probe
from fitune.machine.secrets import mask, mask_secrets
from fitune.machine.system import probe_memory
from fitune.machine.values import Device, DeviceUser, Disk, Driver, Endpoint, Machine, TorchBuild

__all__ = [
    "CPU_PIP_COMMAND",
    "Device",
    "DeviceUser",
    "Disk",
    "Driver",
    "Endpoint",
    "Machine",
    "TorchBuild",
    "Wheel",
    "arch_list_runs_on",
    "checked_on",
    "choose_wheel",
    "decode_cuda_number",
    "driver_for_cuda",
    "mask",
    "mask_secrets",
    "newest_cuda_of_driver",
    "parse_version",
    "probe",
    "probe_memory",
    "runs_cuda",
    "wheels",
]
