# ruff: noqa: E501
"""The probe and its readers, on recorded outputs; a torch that breaks must not take us down."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitune.machine import (
    Machine,
    TorchBuild,
    arch_list_runs_on,
    choose_wheel,
    decode_cuda_number,
    driver_for_cuda,
    mask,
    mask_secrets,
    newest_cuda_of_driver,
    probe,
    runs_cuda,
    wheels,
)
from fitune.machine.cards import (
    kind_of_process,
    read_nvidia_smi,
    read_nvidia_smi_query,
    read_proc_driver,
    read_proc_gpus,
)
from fitune.machine.torch_child import ask_torch

SMI_525 = """
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.60.13    Driver Version: 525.60.13    CUDA Version: 12.0     |
"""
SMI_580 = "| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |\n"
SMI_OLD = "| NVIDIA-SMI 390.77                 Driver Version: 390.77                    |\n"
PROC = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC version: 12\n"
PROC_OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.07  Release Build\n"


@pytest.mark.parametrize(
    ("text", "version", "cuda"),
    [(SMI_525, "525.60.13", (12, 0)), (SMI_580, "580.95.05", (13, 0)), (SMI_OLD, "390.77", None)],
)
def test_nvidia_smi_is_read(text, version, cuda):
    found = read_nvidia_smi(text)
    assert (found.version, found.newest_cuda, found.nvidia_smi) == (version, cuda, "ok")


def test_a_failing_nvidia_smi_keeps_its_words():
    found = read_nvidia_smi("Failed to initialize NVML: Driver/library version mismatch\n")
    assert found.version is None
    assert found.nvidia_smi == "failed"
    assert "mismatch" in found.error


def test_cards_are_read_from_the_query():
    cards = read_nvidia_smi_query("0, Tesla T4, 15360, 1200, 7.5\n1, NVIDIA A10, 23028, [N/A], 8.6\nnoise\n")
    assert [(c.name, c.memory_bytes // 2**20, c.used_bytes // 2**20, c.compute_capability) for c in cards] == [
        ("Tesla T4", 15360, 1200, (7, 5)),
        ("NVIDIA A10", 23028, 0, (8, 6)),
    ]


@pytest.mark.parametrize(
    ("text", "version", "cuda"), [(PROC, "535.183.01", (12, 2)), (PROC_OPEN, "570.133.07", (12, 8))]
)
def test_proc_driver_is_read(text, version, cuda):
    found = read_proc_driver(text)
    assert (found.version, found.newest_cuda, found.told_by) == (version, cuda, "/proc/driver")


def test_card_names_come_from_proc():
    assert read_proc_gpus(["Model: \t\t Tesla T4\nIRQ: 24\n"])[0].name == "Tesla T4"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("python -m ipykernel_launcher", "notebook"), ("chrome.exe", "browser"), ("ToDesk", "remote desktop"), ("Xorg", "desktop"), ("ollama", "inference server"), ("python3 train.py", "python"), ("blender", "other")],
)  # fmt: skip
def test_kinds_of_processes(name, kind):
    assert kind_of_process(name) == kind


@pytest.mark.parametrize(
    ("driver", "system", "cuda"),
    [("525.60.13", "linux", (12, 0)), ("470.239.06", "linux", (11, 4)), ("551.86", "windows", (12, 4)), ("580.95.05", "linux", (13, 0)), ("340.1", "linux", None)],
)  # fmt: skip
def test_driver_table(driver, system, cuda):
    assert newest_cuda_of_driver(driver, system) == cuda


def test_numbers_are_decoded():
    assert decode_cuda_number(11070) == (11, 7)
    assert decode_cuda_number(13000) == (13, 0)


@pytest.mark.parametrize(
    ("driver_cuda", "capabilities", "tag"),
    [
        ((13, 0), ((8, 6),), "cu130"),
        ((13, 0), ((12, 0),), "cu130"),
        ((12, 8), ((12, 0),), "cu128"),
        ((12, 2), ((7, 5),), "cu126"),
        ((13, 0), ((7, 0),), "cu126"),
        ((12, 2), ((8, 9),), "cu126"),
        ((11, 4), ((7, 5),), "cu118"),
        ((13, 0), ((6, 1), (8, 6)), "cu126"),
        ((11, 4), ((3, 7),), None),
        ((10, 2), ((7, 5),), None),
        (None, (), None),
    ],
)
def test_the_wheel_for_a_driver_and_its_cards(driver_cuda, capabilities, tag):
    wheel = choose_wheel(driver_cuda, capabilities)
    assert (wheel.tag if wheel else None) == tag


@given(
    st.sampled_from([(10, 2), (11, 4), (11, 8), (12, 0), (12, 4), (12, 8), (13, 0), (13, 2)]),
    st.sampled_from([(5, 0), (7, 0), (7, 5), (8, 6), (8, 9), (9, 0), (12, 0)]),
)
def test_an_advised_wheel_always_runs(driver_cuda, capability):
    wheel = choose_wheel(driver_cuda, (capability,))
    if wheel is not None:
        assert runs_cuda(driver_cuda, wheel.cuda)
        assert wheel.runs_on(capability)
    else:
        assert not any(runs_cuda(driver_cuda, w.cuda) and w.runs_on(capability) for w in wheels())


def test_architecture_lists():
    assert arch_list_runs_on(("sm_80", "sm_86"), (8, 9))
    assert not arch_list_runs_on(("sm_80", "sm_90"), (12, 0))
    assert arch_list_runs_on(("sm_90", "compute_90"), (12, 0))
    assert not arch_list_runs_on(("sm_60",), (5, 2))


def test_drivers_needed():
    assert driver_for_cuda((12, 6)) == "525.0"
    assert driver_for_cuda((10, 2)) == "440.33"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("HF_TOKEN=hf_AbCdEfGhIjKlMn", "HF_TOKEN=***"),
        ("http://me:secret@proxy:7890", "http://***:***@proxy:7890"),
        ("Authorization: Bearer abcdefghijk", "Authorization: Bearer ***"),
        ("/home/zhangsan/ner/train.py", "/home/USER/ner/train.py"),
        (r"C:\Users\张三\ner", r"C:\Users\USER\ner"),
        ("mail me@example.com", "mail USER@HOST"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_masking(text, masked):
    assert mask(text) == masked


def test_secrets_alone_leave_paths():
    assert mask_secrets("/home/zhangsan hf_AbCdEfGhIjKl") == "/home/zhangsan hf_***"


def fake_python(folder, body):
    """A folder with a torch of its own; returns the interpreter to ask."""
    package = folder / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(body, encoding="utf-8")
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return str(script)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands for Python")
@pytest.mark.parametrize(
    ("body", "state"),
    [
        ("import os; os.abort()", "crashed"),
        ("import time; time.sleep(60)", "hung"),
        ("raise OSError('[WinError 126] no such module')", "failed"),
        ("raise ModuleNotFoundError(\"No module named 'torch'\")", "missing"),
        ("import sys; print('noise'); sys.exit(3)", "failed"),
    ],
)
def test_a_torch_that_breaks_is_a_state(tmp_path, body, state):
    build, _error = ask_torch(2.0, fake_python(tmp_path, body))
    assert build.state == state
    assert isinstance(build, TorchBuild)


def test_probing_without_torch_and_network_is_quick_and_whole():
    found = probe(network=False, torch=False)
    assert found.not_asked == ()
    assert found.packages["pydantic" if "pydantic" in found.packages else "numpy"]
    assert found.memory_bytes > 0
    assert found.disk("work") is not None
    assert Machine.model_validate_json(found.model_dump_json()) == found


def test_a_probe_that_fails_is_named_and_takes_nobody_down(monkeypatch):
    def broken():
        raise RuntimeError("no /proc here")

    monkeypatch.setattr("fitune.machine.probing.probe_memory", broken)
    found = probe(network=False, torch=False)
    assert found.not_asked == ("memory: RuntimeError: no /proc here",)
    assert found.disk("work") is not None


def test_the_room_loads_no_torch():
    code = (
        "import sys, fitune.machine, fitune.doctor; print([m for m in sys.modules if m in ('torch', 'transformers')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
