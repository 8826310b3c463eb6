"""A process of our own starts without the packages that transformers would take along."""

import subprocess
import sys

import pytest

CODE = """
import sys
from fitune.hf import without_extras
with without_extras():
    from fitune.training import train
taken = {'peft', 'bitsandbytes', 'datasets', 'pandas', 'pyarrow', 'scipy', 'sklearn'} & set(sys.modules)
assert not taken, taken
import scipy  # and it is there again
"""


def test_training_starts_without_them() -> None:
    pytest.importorskip("scipy")
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
