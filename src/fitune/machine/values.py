"""Machine: everything that was asked of the outside world, as one value; a recorded one stands for a real one."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Version = tuple[int, int]


class Value(BaseModel):
    """Frozen and closed, JSON both ways."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class DeviceUser(Value):
    """A process that holds memory on a card."""

    pid: int
    name: str = ""
    """Program name; empty when it may not be read."""
    used_bytes: int | None = None
    """None: the driver does not say (Windows, WSL2, containers)."""
    owner: Literal["own", "foreign", "unknown"] = "unknown"
    """own: started by this user."""
    kind: Literal["notebook", "browser", "remote desktop", "desktop", "python", "inference server", "other"] = "other"
    started_seconds_ago: float | None = None


class Device(Value):
    """A physical card (the type of a card is ``values.Card``)."""

    index: int
    name: str
    memory_bytes: int = Field(ge=0)
    used_bytes: int = Field(default=0, ge=0)
    compute_capability: Version | None = None
    users: tuple[DeviceUser, ...] = ()
    driver_model: Literal["WDDM", "TCC", "MCDM"] | None = None
    """Windows only; under WDDM memory spills into host memory."""
    uncorrected_ecc_errors: int | None = None
    mig: bool = False

    @property
    def free_bytes(self) -> int:
        return max(0, self.memory_bytes - self.used_bytes)


class Driver(Value):
    """The NVIDIA driver, as far as it can be reached from here."""

    version: str | None = None
    newest_cuda: Version | None = None
    """The newest CUDA this driver runs."""
    told_by: Literal["nvml", "nvidia-smi", "/proc/driver", ""] = ""
    nvidia_smi: Literal["ok", "missing", "failed", "unknown"] = "unknown"
    pci_card: str = ""
    """A card seen on the PCI bus (``lspci``'s vendor 10de), also where there is no driver."""
    error: str = ""
    """What NVML or nvidia-smi said when it failed."""


class TorchBuild(Value):
    """What a child process with a time limit found out about torch."""

    state: Literal["ok", "missing", "failed", "crashed", "hung"] = "missing"
    """failed: import raised; crashed: the process died of a signal; hung: the time limit was reached."""
    version: str | None = None
    cuda: str | None = None
    """CUDA the wheel was built for, such as "12.6"; None: CPU wheel."""
    hip: str | None = None
    arch_list: tuple[str, ...] = ()
    cuda_available: bool | None = None
    device_count: int | None = None
    cudnn: int | None = None
    warning: str = ""
    """What torch warned of when asked whether CUDA is there."""
    error: str = ""
    exit_code: int | None = None
    seconds: float | None = None


class Disk(Value):
    """One file system that fine-tuning writes to."""

    role: Literal["work", "hf cache", "temporary", "shared memory", "data disk"]
    path: str
    total_bytes: int = Field(ge=0)
    free_bytes: int = Field(ge=0)
    free_inodes: int | None = None
    writable: bool = True
    same_as_system: bool = True
    """On the same file system as ``/``."""


class Endpoint(Value):
    """A hub or a mirror, and whether it answered."""

    name: str
    url: str
    answers: bool
    status: int | None = None
    seconds: float | None = None
    error: str = ""


class Machine(Value):
    """This machine as fine-tuning sees it."""

    fitune: str = ""
    """Version that recorded it."""
    system: Literal["linux", "windows", "macos", "other"] = "linux"
    system_name: str = ""
    python: tuple[int, int, int] = (3, 11, 0)
    python_bits: int = 64
    environment: Literal["venv", "conda", "system"] = "venv"
    container: Literal["docker", "podman", "kubernetes", "other"] | None = None
    wsl: int | None = None
    """1 or 2; None: not WSL."""
    processor: str = ""
    processor_count: int = 1
    driver: Driver = Driver()
    devices: tuple[Device, ...] = ()
    torch: TorchBuild = TorchBuild()
    packages: dict[str, str] = Field(default_factory=dict)
    """Installed distributions that matter here, name -> version."""
    conflicts: tuple[str, ...] = ()
    """Requirements of installed packages that the installed versions do not meet."""
    transformers_error: str = ""
    """What ``import transformers`` said in a child process; empty: it works, or is not installed."""
    memory_bytes: int = 0
    memory_free_bytes: int = 0
    memory_limit_bytes: int | None = None
    """The container's own limit, where it is lower than the machine's memory."""
    swap_bytes: int = 0
    disks: tuple[Disk, ...] = ()
    open_files_limit: int | None = None
    locked_memory_limit_bytes: int | None = None
    settings: dict[str, str] = Field(default_factory=dict)
    """Environment variables that matter, secrets masked."""
    endpoints: tuple[Endpoint, ...] = ()
    """Empty: not asked (offline was wanted)."""
    console_encoding: str = "utf-8"
    file_encoding: str = "utf-8"
    """What ``open()`` uses when no encoding is given."""
    locale: str = ""
    not_asked: tuple[str, ...] = ()
    """Probes that failed or took too long, each with its reason."""

    def disk(self, role: str) -> Disk | None:
        """The first disk with that role."""
        return next((disk for disk in self.disks if disk.role == role), None)
