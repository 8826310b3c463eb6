"""Machines as the probe would have recorded them, and what the doctor must say of each."""

from __future__ import annotations

from dataclasses import dataclass

from fitune.machine import Device, DeviceUser, Disk, Driver, Endpoint, Machine, TorchBuild

GIB = 2**30
CU126 = "--index-url https://download.pytorch.org/whl/cu126"
CU128 = '"torch==2.11.*" --index-url https://download.pytorch.org/whl/cu128'
CU130 = "torch --index-url https://download.pytorch.org/whl/cu130"
CU118 = '"torch==2.7.*" --index-url https://download.pytorch.org/whl/cu118'
CPU = "--index-url https://download.pytorch.org/whl/cpu"
ARCH_CU124 = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
ARCH_CU130 = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120")
HUB = Endpoint(name="huggingface.co", url="https://huggingface.co/x", answers=True, status=200)
NO_HUB = Endpoint(name="huggingface.co", url="https://huggingface.co/x", answers=False, error="timed out")
MIRROR = Endpoint(name="hf-mirror.com", url="https://hf-mirror.com/x", answers=True, status=200)
NO_MIRROR = Endpoint(name="hf-mirror.com", url="https://hf-mirror.com/x", answers=False, error="timed out")


def disk(role="work", free=200, total=500, path="/home/USER/ner", **rest):
    return Disk(role=role, path=path, total_bytes=int(total * GIB), free_bytes=int(free * GIB), **rest)


def torch(version="2.13.0+cu130", cuda="13.0", arch=ARCH_CU130, there=True, **rest):
    return TorchBuild(
        state="ok",
        version=version,
        cuda=cuda,
        arch_list=arch if cuda else (),
        cuda_available=there,
        device_count=1,
        **rest,
    )


def driver(version="580.95.05", cuda=(13, 0), **rest):
    return Driver(version=version, newest_cuda=cuda, told_by="nvml", nvidia_smi="ok", **rest)


def card(name="NVIDIA GeForce RTX 3060", memory=12, used=0.4, sm=(8, 6), index=0, **rest):
    return Device(
        index=index, name=name, memory_bytes=memory * GIB, used_bytes=int(used * GIB), compute_capability=sm, **rest
    )


def machine(**changes):
    """A healthy workstation, with changes."""
    plain = {
        "system": "linux",
        "system_name": "Linux 6.8.0 x86_64",
        "python": (3, 11, 9),
        "processor_count": 16,
        "driver": driver(),
        "devices": (card(),),
        "torch": torch(),
        "packages": {"torch": "2.13.0", "transformers": "5.24.0", "accelerate": "1.15.0", "tokenizers": "0.23.3"},
        "memory_bytes": 32 * GIB,
        "memory_free_bytes": 24 * GIB,
        "disks": (
            disk(),
            disk("hf cache", path="/home/USER/.cache/huggingface/hub"),
            disk("shared memory", 16, 16, "/dev/shm"),
        ),
        "open_files_limit": 65535,
        "endpoints": (HUB,),
    }
    return Machine.model_validate({**plain, **changes})


@dataclass(frozen=True)
class Expected:
    """What must be said: (code, status), a piece of the command beside the first of them, the exit code."""

    machine: Machine
    said: tuple[tuple[str, str], ...] = ()
    command: str = ""
    exit_code: int = 0


NO_CARD = {"driver": Driver(error="NVML Shared Library Not Found", nvidia_smi="missing"), "devices": ()}
MACHINES: dict[str, Expected] = {
    "healthy 3060": Expected(machine()),
    "T4 in a container, no nvidia-smi, NVML there": Expected(
        machine(
            container="docker",
            driver=Driver(version="535.183.01", newest_cuda=(12, 2), told_by="nvml", nvidia_smi="missing"),
            devices=(card("Tesla T4", 15, 0.1, (7, 5)),),
            torch=torch("2.9.1+cu126", "12.6", ARCH_CU124),
            disks=(disk(), disk("shared memory", 0.06, 0.0625, "/dev/shm")),
        ),
        (("FT406", "warning"),),
    ),
    "T4 in a container started without the card": Expected(
        machine(container="docker", **NO_CARD, torch=torch(there=False)),
        (("FT412", "problem"),),
        "docker run --gpus all",
        1,
    ),
    "5090 with a cu124 wheel": Expected(
        machine(
            devices=(card("NVIDIA GeForce RTX 5090", 32, 1, (12, 0)),), torch=torch("2.6.0+cu124", "12.4", ARCH_CU124)
        ),
        (("FT403", "problem"),),
        CU130,
        1,
    ),
    "5090 with driver 570": Expected(
        machine(
            driver=driver("570.133.07", (12, 8)),
            devices=(card("NVIDIA GeForce RTX 5090", 32, 1, (12, 0)),),
            torch=torch("2.6.0+cu124", "12.4", ARCH_CU124),
        ),
        (("FT403", "problem"),),
        CU128,
        1,
    ),
    "CPU wheel on a 3060 laptop": Expected(
        machine(
            system="windows",
            system_name="Windows 11 AMD64",
            driver=driver("551.86", (12, 4)),
            devices=(card("NVIDIA GeForce RTX 3060 Laptop GPU", 6, 0.8, driver_model="WDDM"),),
            torch=torch("2.13.0+cpu", None, (), False),
            console_encoding="cp936",
            file_encoding="cp936",
        ),
        (("FT408", "problem"), ("FT413", "warning"), ("FT313", "note")),
        CU126,
        1,
    ),
    "driver 470": Expected(
        machine(
            driver=driver("470.239.06", (11, 4)),
            devices=(card("NVIDIA GeForce RTX 2080 Ti", 11, 0.2, (7, 5)),),
            torch=torch("2.9.1+cu126", "12.6", ARCH_CU124, False),
        ),
        (("FT402", "problem"),),
        CU118,
        1,
    ),
    "driver 390, too old for anything": Expected(
        machine(
            driver=driver("390.157", (9, 1)),
            devices=(card("GeForce GTX 1080", 8, 0.2, (6, 1)),),
            torch=torch("2.7.1+cu118", "11.8", ARCH_CU124, False),
        ),
        (("FT402", "problem"),),
        "",
        1,
    ),
    "WSL2, ready": Expected(
        machine(wsl=2, system_name="Linux 5.15.167.4-microsoft-standard-WSL2"), (("FT313", "note"),)
    ),
    "two users on one card": Expected(
        machine(
            devices=(
                card(
                    "NVIDIA GeForce RTX 3090",
                    24,
                    20.5,
                    users=(
                        DeviceUser(pid=4711, name="python", used_bytes=12 * GIB, owner="foreign", kind="python"),
                        DeviceUser(pid=5200, name="python3", used_bytes=8 * GIB, owner="own", kind="notebook"),
                    ),
                ),
            )
        ),
        (("FT306", "warning"), ("FT306", "warning")),
    ),
    "a browser and a remote desktop on the card": Expected(
        machine(
            devices=(
                card(
                    used=2.6,
                    users=(
                        DeviceUser(pid=900, name="chrome", used_bytes=1 * GIB, owner="own", kind="browser"),
                        DeviceUser(pid=901, name="todesk", used_bytes=1 * GIB, owner="own", kind="remote desktop"),
                    ),
                ),
            )
        ),
        (("FT306", "warning"), ("FT306", "warning")),
    ),
    "memory held by processes outside the container": Expected(
        machine(container="kubernetes", devices=(card("NVIDIA A10", 24, 18),)), (("FT306", "warning"),)
    ),
    "no torch, driver 550": Expected(
        machine(driver=driver("550.90.07", (12, 4)), torch=TorchBuild(state="missing"), packages={}),
        (("FT401", "problem"),),
        CU126,
        1,
    ),
    "no torch, no card": Expected(
        machine(**NO_CARD, torch=TorchBuild(state="missing")), (("FT401", "problem"), ("FT412", "note")), CPU, 1
    ),
    "torch aborts on import": Expected(
        machine(torch=TorchBuild(state="crashed", exit_code=-6, error="terminate called after throwing")),
        (("FT409", "problem"),),
        CU130,
        1,
    ),
    "torch hangs on import": Expected(
        machine(torch=TorchBuild(state="hung", error="no answer within 20 s")), (("FT409", "problem"),), CU130, 1
    ),
    "torch lacks a DLL": Expected(
        machine(system="windows", torch=TorchBuild(state="failed", error="OSError: [WinError 126]", exit_code=1)),
        (("FT409", "problem"),),
        CU130,
        1,
    ),
    "K80": Expected(
        machine(
            driver=driver("470.256.02", (11, 4)),
            devices=(card("Tesla K80", 11, 0, (3, 7)),),
            torch=torch("2.7.1+cu118", "11.8", ARCH_CU124),
        ),
        (("FT403", "problem"),),
        CPU,
        1,
    ),
    "V100 with a cu130 wheel": Expected(
        machine(devices=(card("Tesla V100-SXM2-16GB", 16, 0, (7, 0)),), torch=torch()),
        (("FT403", "problem"),),
        CU126,
        1,
    ),
    "GTX 1080 Ti with cu128 2.9": Expected(
        machine(
            driver=driver("560.94", (12, 6)),
            devices=(card("NVIDIA GeForce GTX 1080 Ti", 11, 0.6, (6, 1)),),
            torch=torch("2.9.0+cu128", "12.8", ("sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")),
        ),
        (("FT403", "problem"),),
        CU126,
        1,
    ),
    "driver updated, not restarted": Expected(
        machine(
            driver=Driver(error="Driver/library version mismatch", nvidia_smi="failed", pci_card="0000:01:00.0"),
            devices=(),
            torch=torch(there=False),
        ),
        (("FT412", "problem"), ("FT419", "problem")),
        "",
        1,
    ),
    "CUDA_VISIBLE_DEVICES names a card that is not there": Expected(
        machine(settings={"CUDA_VISIBLE_DEVICES": "1"}), (("FT421", "problem"),), "CUDA_VISIBLE_DEVICES=0", 1
    ),
    "tokenizers of another time": Expected(
        machine(conflicts=("transformers 5.24.0 needs tokenizers<0.24,>=0.23; installed: 0.15.2",)),
        (("FT410", "problem"),),
        "pip install -U",
        1,
    ),
    "rented box, system disk nearly full": Expected(
        machine(
            container="docker",
            disks=(
                disk("work", 4, 30, "/root/ner"),
                disk("hf cache", 4, 30, "/root/.cache/huggingface/hub"),
                disk("data disk", 48, 50, "/root/autodl-tmp", same_as_system=False),
                disk("shared memory", 30, 30, "/dev/shm"),
            ),
        ),
        (("FT427", "warning"), ("FT427", "warning"), ("FT601", "warning"), ("FT601", "warning")),
        "export HF_HOME=/root/autodl-tmp/hf",
    ),
    "no hub, the mirror answers": Expected(
        machine(endpoints=(NO_HUB, MIRROR)), (("FT702", "warning"),), "export HF_ENDPOINT=https://hf-mirror.com"
    ),
    "a proxy that does not run": Expected(
        machine(endpoints=(NO_HUB, NO_MIRROR), settings={"https_proxy": "http://127.0.0.1:7890"}),
        (("FT702", "warning"), ("FT720", "warning")),
        "fitune train FILE --model /path/to/folder",
    ),
    "cluster node: few files, little memory": Expected(
        machine(open_files_limit=256, memory_limit_bytes=3 * GIB), (("FT316", "warning"), ("FT415", "warning"))
    ),
    "read-only home, inodes used up": Expected(
        machine(disks=(disk(writable=False), disk("hf cache", 90, 100, "/home/USER/.cache", free_inodes=0))),
        (("FT601", "problem"), ("FT605", "problem")),
        "",
        1,
    ),
    "Python 3.8, 32-bit card fault": Expected(
        machine(python=(3, 8, 10), devices=(card(uncorrected_ecc_errors=3),)),
        (("FT414", "problem"), ("FT422", "problem")),
        "",
        1,
    ),
    "Mac": Expected(machine(system="macos", **NO_CARD, torch=torch("2.13.0", None, (), False))),
}
