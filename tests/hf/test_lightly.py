"""A process of our own starts without the packages that transformers would take along."""

import importlib
import os
import subprocess
import sys

import pytest

CODE = """
import sys
from fitune.hf import light_imports
with light_imports():
    from fitune.training import train
taken = {'peft', 'bitsandbytes', 'datasets', 'pandas', 'pyarrow', 'scipy', 'sklearn'} & set(sys.modules)
assert not taken, taken
import scipy  # and it is there again
import torch.distributed
assert torch.distributed.is_available() == DISTRIBUTED
import torch._inductor.compile_fx  # torch.compile wants what was left out, and finds it
"""


def test_training_starts_without_them() -> None:
    pytest.importorskip("scipy")
    distributed = importlib.import_module("torch.distributed").is_available()
    done = subprocess.run(
        [sys.executable, "-c", CODE.replace("DISTRIBUTED", str(distributed))], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_freed_memory_stays_unless_the_user_set_limits():
    """In a process of its own: what it sets is for the process's life."""
    code = (
        "import resource, torch; from fitune.hf import keep_memory; print(keep_memory())\n"
        "torch.set_num_threads(1)\n"
        "def faults():\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    for _pass in range(20):\n"
        "        blocks = [torch.ones(1 << 21) for _block in range(4)]; del blocks\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        "faults(); print(faults())"
    )

    def run(**variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")} | variables
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    done, faults = run().stdout.split()
    if done == "False":
        pytest.skip("not glibc")
    assert int(faults) < 2048
    assert run(MALLOC_TRIM_THRESHOLD_="131072").stdout.split()[0] == "False"


def test_kept_memory_can_be_given_back():
    code = (
        "import psutil, torch; from fitune.hf import give_memory_back, keep_memory\n"
        "torch.set_num_threads(1); done = keep_memory()\n"
        "size = psutil.Process().memory_info\n"
        "start = size().rss\n"
        # Blocks below the largest kept one, and a small block above them that keeps the heap's end in place.
        "blocks = [torch.ones(1 << 20) for _block in range(25)]; small = bytearray(1000); del blocks\n"
        "kept = size().rss - start; told = give_memory_back(); left = size().rss - start\n"
        "print(done and told, kept >> 20, left >> 20)"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    told, kept, left = done.stdout.split()
    if told == "False":
        pytest.skip("not glibc")
    assert int(kept) > 80
    assert int(left) < 20
