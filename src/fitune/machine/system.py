"""The machine around the card: Python, memory, disks, limits, settings, console."""

import locale
import os
import platform
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from fitune.machine.secrets import mask_secrets
from fitune.machine.values import Disk

_PACKAGES = """
torch torchvision torchaudio transformers accelerate tokenizers safetensors huggingface-hub datasets numpy
peft bitsandbytes evaluate seqeval scikit-learn protobuf sentencepiece flash-attn deepspeed nvidia-ml-py
pynvml modelscope pandas triton apex
"""
_SETTINGS = """
CUDA_VISIBLE_DEVICES CUDA_LAUNCH_BLOCKING CUDA_HOME LD_LIBRARY_PATH LD_PRELOAD PYTORCH_CUDA_ALLOC_CONF
PYTORCH_ALLOC_CONF TOKENIZERS_PARALLELISM OMP_NUM_THREADS HF_HOME HF_HUB_CACHE HF_ENDPOINT HF_HUB_OFFLINE
HF_HUB_ENABLE_HF_TRANSFER HF_DATASETS_OFFLINE HF_TOKEN TRANSFORMERS_CACHE TRANSFORMERS_OFFLINE
MODELSCOPE_CACHE HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
REQUESTS_CA_BUNDLE SSL_CERT_FILE LANG LC_ALL LC_CTYPE PYTHONIOENCODING PYTHONUTF8 PYTHONPATH PYTHONNOUSERSITE
CONDA_PREFIX NVIDIA_VISIBLE_DEVICES WANDB_MODE WANDB_API_KEY WANDB_DISABLED TMPDIR NCCL_P2P_DISABLE
MASTER_PORT
"""
PACKAGES = tuple(_PACKAGES.split())
SETTINGS = tuple(_SETTINGS.split())
# Where rented boxes keep the disk that survives and has room (AutoDL, Featurize, RunPod, OpenBayes, common mounts).
DATA_DISKS = (
    "/root/autodl-tmp",
    "/hy-tmp",
    "/workspace",
    "/openbayes/home",
    "/home/featurize/data",
    "/gemini/data-1",
    "/data",
    "/mnt/data",
    "/mnt/workspace",
)


def probe_packages() -> dict[str, str]:
    """Installed versions of the packages that matter, without importing any."""
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def find_conflicts() -> tuple[str, ...]:
    """Requirements among PACKAGES that the installed versions break, read from their metadata (nothing is imported)."""
    try:
        from packaging.requirements import InvalidRequirement, Requirement
    except ImportError:  # comes with transformers; without it there is nothing to compare
        return ()
    broken: list[str] = []
    for name in ("transformers", "accelerate", "tokenizers", "datasets", "torchvision", "torchaudio", "peft", "torch"):
        try:
            version, requirements = metadata.version(name), metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for text in requirements:
            try:
                wanted = Requirement(text)
                if wanted.name.lower() not in PACKAGES or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
                    continue
                have = metadata.version(wanted.name)
            except (metadata.PackageNotFoundError, InvalidRequirement):
                continue
            if not wanted.specifier.contains(have, prereleases=True):
                broken.append(f"{name} {version} needs {wanted.name}{wanted.specifier}; installed: {have}")
    return tuple(broken)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def probe_place() -> dict[str, Any]:
    """Operating system, Python, container, WSL."""
    systems: dict[str, Literal["linux", "windows", "macos"]] = {
        "Linux": "linux",
        "Windows": "windows",
        "Darwin": "macos",
    }
    release = platform.release().lower()
    wsl = (2 if "wsl2" in release or "microsoft-standard" in release else 1) if "microsoft" in release else None
    container: str | None = None
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        container = "kubernetes"
    elif os.path.exists("/.dockerenv"):
        container = "docker"
    elif os.path.exists("/run/.containerenv"):
        container = "podman"
    elif any(word in _read("/proc/1/cgroup") for word in ("docker", "containerd", "lxc", "kubepods")):
        container = "other"
    if sys.prefix != sys.base_prefix:
        environment = "venv"
    else:
        environment = "conda" if os.path.isdir(os.path.join(sys.prefix, "conda-meta")) else "system"
    return {
        "system": systems.get(platform.system(), "other"),
        "system_name": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": tuple(sys.version_info[:3]),
        "python_bits": 64 if sys.maxsize > 2**32 else 32,
        "environment": environment,
        "container": container,
        "wsl": wsl,
        "processor": platform.processor() or platform.machine(),
        "processor_count": os.cpu_count() or 1,
    }


def memory_limit_bytes(machine_bytes: int) -> int | None:
    """The container's memory limit (cgroup v2, then v1), where it is lower than the machine's memory."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _read(path).strip()
        if text.isdigit() and int(text) < machine_bytes:
            return int(text)
    return None


def probe_memory() -> dict[str, Any]:
    """Host memory and limits."""
    import psutil

    memory = psutil.virtual_memory()
    found: dict[str, Any] = {
        "memory_bytes": memory.total,
        "memory_free_bytes": memory.available,
        "memory_limit_bytes": memory_limit_bytes(memory.total),
        "swap_bytes": psutil.swap_memory().total,
    }
    if sys.platform != "win32":
        import resource

        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        found["open_files_limit"] = None if files == resource.RLIM_INFINITY else files
        found["locked_memory_limit_bytes"] = None if locked == resource.RLIM_INFINITY else locked
    return found


def _existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def probe_disk(role: Any, path: Path) -> Disk:
    """Room on the file system that holds (or will hold) ``path``."""
    there = _existing(path)
    usage = shutil.disk_usage(there)
    inodes: int | None = None
    if hasattr(os, "statvfs"):
        stat = os.statvfs(there)
        inodes = stat.f_favail if stat.f_files else None
    root = Path(there.anchor or "/")
    return Disk(
        role=role,
        path=str(path),
        total_bytes=usage.total,
        free_bytes=usage.free,
        free_inodes=inodes,
        writable=os.access(there, os.W_OK),
        same_as_system=there.stat().st_dev == root.stat().st_dev,
    )


def hf_cache_path() -> Path:
    """Where Hugging Face keeps its files: HF_HUB_CACHE, HF_HOME/hub, ~/.cache/huggingface/hub."""
    if value := os.environ.get("HF_HUB_CACHE"):
        return Path(value).expanduser()
    if value := os.environ.get("HF_HOME"):
        return Path(value).expanduser() / "hub"
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "huggingface" / "hub"


def probe_disks(work: Path) -> tuple[Disk, ...]:
    """The disks that a run writes to, and a rented box's data disk."""
    wanted: list[tuple[str, Path]] = [
        ("work", work),
        ("hf cache", hf_cache_path()),
        ("temporary", Path(tempfile.gettempdir())),
    ]
    if os.path.isdir("/dev/shm"):
        wanted.append(("shared memory", Path("/dev/shm")))
    disks = [probe_disk(role, path) for role, path in wanted]
    for name in DATA_DISKS:
        if os.path.isdir(name):
            disk = probe_disk("data disk", Path(name))
            if not disk.same_as_system:
                disks.append(disk)
    return tuple(disks)


def probe_settings() -> dict[str, str]:
    """Environment variables that matter; tokens and passwords masked."""
    found: dict[str, str] = {}
    for name in SETTINGS:
        value = os.environ.get(name)
        if value is not None:
            secret = name.endswith(("TOKEN", "KEY"))
            found[name] = "***" if secret and value else mask_secrets(value)
    return found


def probe_console() -> dict[str, Any]:
    """What the console and ``open()`` use for text."""
    encoding = getattr(sys.stdout, "encoding", None) or locale.getpreferredencoding(False)
    return {
        "console_encoding": encoding.lower(),
        "file_encoding": locale.getpreferredencoding(False).lower(),
        "locale": ".".join(part for part in locale.getlocale() if part),
    }
