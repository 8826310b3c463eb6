import json
import os
import signal
import subprocess
import sys
import time

import pytest

from fitune.checkpoint import Lock, Locked

HOLD = """
import sys, time
from fitune.checkpoint import Lock
with Lock(sys.argv[1]):
    print('held', flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_by_name_and_a_dead_one_is_not_in_the_way(tmp_path):
    path = tmp_path / "lock"
    child = subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "held\n"
        with pytest.raises(Locked, match=f"process {child.pid} ") as caught:
            Lock(path).acquire()
        assert caught.value.code == "FT603"
        assert Lock(path).holder()["pid"] == child.pid
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert path.exists()
        assert Lock(path).holder() is None
        with Lock(path) as lock:
            assert lock.holder()["pid"] == os.getpid()
        assert not path.exists()
    finally:
        child.kill()
        child.wait()


def test_another_process_with_the_same_number_is_not_the_holder(tmp_path):
    path = tmp_path / "lock"
    with Lock(path):
        found = json.loads(path.read_text())
    path.write_text(json.dumps({**found, "started": "1"}))
    assert Lock(path).holder() is None
    path.write_text(json.dumps({**found, "boot": "another"}))
    assert Lock(path).holder() is None
    path.write_text(json.dumps({**found, "host": "elsewhere"}))
    with pytest.raises(Locked, match="elsewhere"):
        Lock(path).acquire()
    for torn in ("", "{", "[]", "{}"):
        path.write_text(torn)
        assert Lock(path).holder() is None


def test_of_many_processes_one_takes_over(tmp_path):
    path = tmp_path / "lock"
    code = HOLD.replace("time.sleep(60)", "time.sleep(1.5)")
    with Lock(path):
        found = json.loads(path.read_text())
    path.write_text(json.dumps({**found, "started": "1"}))
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for _ in range(4)
    ]
    time.sleep(0)
    said = [child.communicate()[0] for child in children]
    # Starts may be further apart than a holder holds; never two at once is what counts.
    assert 1 <= said.count("held\n") <= 4
    assert not path.exists()


def test_a_lock_that_a_bad_disk_left_behind_is_not_in_this_process_way(tmp_path, monkeypatch):
    lock = Lock(tmp_path / "lock")
    lock.acquire()
    with monkeypatch.context() as bad:
        bad.setattr(type(tmp_path), "open", lambda *_a, **_k: (_ for _ in ()).throw(OSError(5, "bad disk")))
        lock.release()
    assert (tmp_path / "lock").exists()
    with Lock(tmp_path / "lock"), pytest.raises(Locked):
        Lock(tmp_path / "lock").acquire()
