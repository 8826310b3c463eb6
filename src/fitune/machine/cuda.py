"""The dated table of drivers, CUDA versions and PyTorch wheels, and the questions it answers."""

import sys
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

Version = tuple[int, int]


@dataclass(frozen=True)
class Wheel:
    """A PyTorch wheel on https://download.pytorch.org/whl/TAG."""

    tag: str
    cuda: Version
    newest: str
    """Last PyTorch built with this tag; empty: still built."""
    arch: tuple[Version, ...]

    def runs_on(self, capability: Version) -> bool:
        """Whether it holds machine code for a card of that compute capability (same major, minor not above)."""
        return any(major == capability[0] and minor <= capability[1] for major, minor in self.arch)

    @property
    def pip_command(self) -> str:
        """The exact line to type."""
        wanted = f'"torch=={self.newest}.*"' if self.newest else "torch"
        return f"pip install --force-reinstall {wanted} --index-url https://download.pytorch.org/whl/{self.tag}"


CPU_PIP_COMMAND = "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cpu"


def parse_version(text: str) -> Version:
    """The first two numbers: "570.26.01" -> (570, 26)."""
    parts = [*text.split("."), "0"]
    return int(parts[0]), int(parts[1])


@cache
def _facts() -> dict[str, Any]:
    text = (resources.files("fitune.machine") / "facts" / "cuda.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def checked_on() -> str:
    """The day on which the table was checked."""
    return str(_facts()["checked"])


@cache
def wheels() -> tuple[Wheel, ...]:
    """All wheels with CUDA that are worth recommending, newest CUDA first."""
    return tuple(
        Wheel(
            tag=row["tag"],
            cuda=parse_version(row["cuda"]),
            newest=row["newest"],
            arch=tuple(parse_version(arch) for arch in row["arch"]),
        )
        for row in _facts()["wheel"]
    )


def newest_cuda_of_driver(driver: str, system: str = "linux") -> Version | None:
    """The newest CUDA that this driver knows; None: older than the table."""
    column = "windows" if system == "windows" else "linux"
    have = parse_version(driver)
    return next((parse_version(row["cuda"]) for row in _facts()["driver"] if have >= parse_version(row[column])), None)


def driver_for_cuda(cuda: Version, system: str = "linux") -> str | None:
    """The oldest driver that runs this CUDA, through minor-version compatibility where there is any."""
    column = "windows" if system == "windows" else "linux"
    for row in _facts()["major"]:
        if row["cuda"] == cuda[0]:
            return str(row[column])
    return next((str(row[column]) for row in _facts()["driver"] if parse_version(row["cuda"]) == cuda), None)


def runs_cuda(driver_cuda: Version, wheel_cuda: Version) -> bool:
    """Whether a driver whose newest CUDA is ``driver_cuda`` runs a wheel built for ``wheel_cuda``.

    Minor-version compatibility from CUDA 11.1 on; before that the driver's CUDA must be at least the wheel's.
    Source: https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    if wheel_cuda[0] >= 11 and driver_cuda[0] == wheel_cuda[0]:
        return True
    return driver_cuda >= wheel_cuda


def decode_cuda_number(number: int) -> Version:
    """What CUDA's integers mean: 11070 -> (11, 7)."""
    return number // 1000, number % 1000 // 10


def choose_wheel(driver_cuda: Version | None, capabilities: tuple[Version, ...]) -> Wheel | None:
    """The wheel to install for this driver and these cards; None: no wheel of today runs here.

    Wheels that are still built come before those that are not.
    """
    if driver_cuda is None:
        return None
    fitting = [
        wheel
        for wheel in wheels()
        if runs_cuda(driver_cuda, wheel.cuda) and all(wheel.runs_on(capability) for capability in capabilities)
    ]
    return min(fitting, key=lambda wheel: bool(wheel.newest), default=None)


def parse_arch(name: str) -> Version | None:
    """ "sm_120" -> (12, 0), "sm_90a" -> (9, 0); None for anything else."""
    digits = name.removeprefix("sm_").rstrip("af")
    return (
        (int(digits[:-1]), int(digits[-1])) if name.startswith("sm_") and digits.isdigit() and len(digits) > 1 else None
    )


def arch_list_runs_on(arch_list: tuple[str, ...], capability: Version) -> bool:
    """Whether ``torch.cuda.get_arch_list()`` serves the card: machine code of its major version, or PTX to compile."""
    for name in arch_list:
        arch = parse_arch(name)
        if arch and arch[0] == capability[0] and arch[1] <= capability[1]:
            return True
        if name.startswith("compute_"):
            ptx = parse_arch("sm_" + name.removeprefix("compute_"))
            if ptx and ptx <= capability:
                return True
    return False
