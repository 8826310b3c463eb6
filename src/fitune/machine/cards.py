"""The driver and the cards: NVML first, then nvidia-smi, then /proc/driver. None of them needs root."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Literal

from fitune.machine.cuda import newest_cuda_of_driver
from fitune.machine.values import Device, DeviceUser, Driver, Version

System = Literal["linux", "windows", "macos", "other"]

_KINDS: tuple[tuple[str, str], ...] = (
    (r"ipykernel|jupyter|kernel_launcher|spyder", "notebook"),
    (r"chrome|firefox|msedge|edge|brave|opera|safari|webview", "browser"),
    (r"anydesk|teamviewer|todesk|sunlogin|rustdesk|xrdp|vnc|parsec|nomachine|oray", "remote desktop"),
    (r"xorg|xwayland|gnome|kwin|plasma|dwm\.exe|explorer\.exe|cinnamon|compiz|shellexperience|wechat|qq", "desktop"),
    (r"ollama|vllm|llama|sglang|triton|lmdeploy|xinference|text-generation", "inference server"),
    (r"python|torchrun|accelerate|deepspeed", "python"),
)


def kind_of_process(name: str) -> Any:
    """What a process that holds memory probably is, from its program name or command line."""
    return next((kind for pattern, kind in _KINDS if re.search(pattern, name, re.IGNORECASE)), "other")


def describe_process(pid: int, used_bytes: int | None) -> DeviceUser:
    """Name, owner and age of a process; what may not be read stays unknown."""
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            name = process.name()
            try:
                command = " ".join(process.cmdline()[:4])
            except psutil.Error:
                command = name
            own = process.username() == psutil.Process().username()
            age = max(0.0, time.time() - process.create_time())
    except psutil.Error:
        # In a container the driver gives pids of the host, which cannot be looked up here.
        return DeviceUser(pid=pid, used_bytes=used_bytes)
    return DeviceUser(
        pid=pid,
        name=name,
        used_bytes=used_bytes,
        owner="own" if own else "foreign",
        kind=kind_of_process(f"{name} {command}"),
        started_seconds_ago=round(age),
    )


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _nvml_device(nvml: Any, index: int) -> Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    users: dict[int, int | None] = {}
    for ask in (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses):
        try:
            for process in ask(handle):
                users[process.pid] = process.usedGpuMemory
        except nvml.NVMLError:
            continue  # not supported on this card or system: the users stay unknown
    extra: dict[str, Any] = {}
    try:
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        extra["compute_capability"] = (major, minor)
    except nvml.NVMLError:
        extra["compute_capability"] = None
    try:
        current = nvml.nvmlDeviceGetDriverModel(handle)
        extra["driver_model"] = {0: "WDDM", 1: "TCC", 2: "MCDM"}.get(
            current[0] if isinstance(current, list) else current
        )
    except nvml.NVMLError:
        extra["driver_model"] = None
    try:
        extra["mig"] = nvml.nvmlDeviceGetMigMode(handle)[0] == 1
    except nvml.NVMLError:
        extra["mig"] = False
    try:
        extra["uncorrected_ecc_errors"] = nvml.nvmlDeviceGetTotalEccErrors(
            handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        )
    except nvml.NVMLError:
        extra["uncorrected_ecc_errors"] = None
    return Device(
        index=index,
        name=_text(nvml.nvmlDeviceGetName(handle)),
        memory_bytes=int(memory.total),
        used_bytes=int(memory.used),
        users=tuple(describe_process(pid, used) for pid, used in users.items() if pid != os.getpid()),
        **extra,
    )


def ask_nvml() -> tuple[Driver, tuple[Device, ...]]:
    """Driver and cards through nvidia-ml-py; a Driver with ``error`` where NVML cannot be had."""
    import pynvml as nvml

    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return Driver(error=str(error)), ()
    try:
        version = _text(nvml.nvmlSystemGetDriverVersion())
        number = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
        driver = Driver(version=version, newest_cuda=(number // 1000, number % 1000 // 10), told_by="nvml")
        return driver, tuple(_nvml_device(nvml, i) for i in range(nvml.nvmlDeviceGetCount()))
    except nvml.NVMLError as error:
        return Driver(error=str(error)), ()
    finally:
        nvml.nvmlShutdown()


def read_nvidia_smi(output: str) -> Driver:
    """Driver and newest CUDA from the head of nvidia-smi's table."""
    version = re.search(r"Driver Version:\s*([\d.]+)", output)
    cuda = re.search(r"CUDA(?: UMD)? Version:\s*(\d+)\.(\d+)", output)
    if not version:
        first = next((line.strip() for line in output.splitlines() if line.strip()), "")
        return Driver(nvidia_smi="failed", error=first)
    newest: Version | None = (int(cuda[1]), int(cuda[2])) if cuda else newest_cuda_of_driver(version[1])
    return Driver(version=version[1], newest_cuda=newest, told_by="nvidia-smi", nvidia_smi="ok")


_QUERY = "index,name,memory.total,memory.used,compute_cap"


def read_nvidia_smi_query(output: str) -> tuple[Device, ...]:
    """Cards from ``nvidia-smi --query-gpu=... --format=csv,noheader,nounits`` with the columns of ``_QUERY``."""
    devices: list[Device] = []
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 5 or not cells[0].isdigit() or not cells[2].isdigit():
            continue
        capability = re.fullmatch(r"(\d+)\.(\d+)", cells[4])
        devices.append(
            Device(
                index=int(cells[0]),
                name=cells[1],
                memory_bytes=int(cells[2]) * 2**20,
                used_bytes=int(cells[3]) * 2**20 if cells[3].isdigit() else 0,
                compute_capability=(int(capability[1]), int(capability[2])) if capability else None,
            )
        )
    return tuple(devices)


def find_nvidia_smi() -> str | None:
    """nvidia-smi on PATH or where WSL2 and Windows keep it."""
    known = ("/usr/lib/wsl/lib/nvidia-smi", r"C:\Windows\System32\nvidia-smi.exe")
    return shutil.which("nvidia-smi") or next((path for path in known if os.path.exists(path)), None)


def _run(command: list[str], limit_seconds: float) -> str:
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=limit_seconds, check=False)
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def ask_nvidia_smi(limit_seconds: float = 5.0) -> tuple[Driver, tuple[Device, ...]]:
    """Driver and cards through nvidia-smi, for where NVML cannot be loaded."""
    program = find_nvidia_smi()
    if program is None:
        return Driver(nvidia_smi="missing"), ()
    try:
        driver = read_nvidia_smi(_run([program], limit_seconds))
        if driver.nvidia_smi != "ok":
            return driver, ()
        query = _run([program, f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"], limit_seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Driver(nvidia_smi="failed", error=str(error)), ()
    return driver, read_nvidia_smi_query(query)


def read_proc_driver(text: str) -> Driver:
    """Driver from /proc/driver/nvidia/version, for a container that has neither NVML nor nvidia-smi."""
    match = re.search(r"Kernel Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)", text)
    if not match:
        return Driver()
    return Driver(version=match[1], newest_cuda=newest_cuda_of_driver(match[1]), told_by="/proc/driver")


def read_proc_gpus(texts: list[str]) -> tuple[Device, ...]:
    """Names of the cards from /proc/driver/nvidia/gpus/*/information (memory is not told there)."""
    names = [match[1].strip() for text in texts if (match := re.search(r"^Model:\s*(.+)$", text, re.MULTILINE))]
    return tuple(Device(index=index, name=name, memory_bytes=0) for index, name in enumerate(names))


def card_on_pci_bus(root: Path = Path("/sys/bus/pci/devices")) -> str:
    """The address of an NVIDIA display adapter on the PCI bus; empty: none seen, or not Linux."""
    try:
        for device in sorted(root.iterdir()):
            vendor = (device / "vendor").read_text().strip()
            if vendor == "0x10de" and (device / "class").read_text().strip().startswith("0x03"):
                return device.name
    except OSError:
        return ""
    return ""


def probe_cards() -> tuple[Driver, tuple[Device, ...]]:
    """The driver and the cards by the first of NVML, nvidia-smi and /proc/driver that answers."""
    driver, devices = ask_nvml()
    smi: Literal["ok", "missing"] = "ok" if find_nvidia_smi() else "missing"
    if driver.version is None:
        nvml_error = driver.error
        driver, devices = ask_nvidia_smi()
        proc = Path("/proc/driver/nvidia")
        if driver.version is None and (proc / "version").exists():
            told = read_proc_driver((proc / "version").read_text())
            devices = read_proc_gpus([path.read_text() for path in sorted(proc.glob("gpus/*/information"))])
            driver = told.model_copy(update={"nvidia_smi": driver.nvidia_smi, "error": driver.error or nvml_error})
        elif driver.version is None:
            driver = driver.model_copy(update={"error": driver.error or nvml_error})
    else:
        driver = driver.model_copy(update={"nvidia_smi": smi})
    return driver.model_copy(update={"pci_card": card_on_pci_bus()}), devices
