"""Damage of every kind, kill -9 at random moments, full and read-only disks."""

import contextlib
import errno
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fitune.checkpoint import Damaged, NotSaved, Policy, Store, Writer, commit, usual_modes

from .arrays_of import arrays_of, value_of


def saved_store(folder, steps=(1, 2), **policy):
    store = Store(folder / "checkpoints", Policy(**policy) if policy else None)
    for step in steps:
        store.save(step, arrays_of(step), {"step": step, "rng": [1, [2, 3], None], "lr": 0.1 + 0.2})
    return store


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    checkpoint = saved_store(tmp_path).newest()
    assert checkpoint.step == value_of(checkpoint) == 2
    assert checkpoint.state == {"step": 2, "rng": [1, [2, 3], None], "lr": 0.1 + 0.2}
    assert Store(tmp_path / "none").newest() is None


FILES = ("arrays.safetensors", "state.json", "manifest.json")


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def lengthen(path):
    path.write_bytes(path.read_bytes() + b" ")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("spoil", [truncate, flip, Path.unlink, lambda p: p.write_bytes(b""), lengthen])
def test_a_damaged_newest_is_named_and_passed_over(tmp_path, name, spoil):
    store = saved_store(tmp_path)
    newest = store.newest().path
    spoil(newest / name)
    checkpoint = store.newest()
    assert checkpoint.step == value_of(checkpoint) == 1
    (passed,) = store.passed_over
    assert passed.path == newest
    assert name in passed.reason
    # Saving goes on beside it.
    store.save(3, arrays_of(3), {})
    assert store.newest().step == 3


def test_the_newest_is_found_by_what_it_holds_not_by_its_name(tmp_path):
    store = saved_store(tmp_path, latest=3, steps=(1, 2, 3))
    directory = store.directory
    (directory / "000001-step-1").rename(directory / "999999-step-9")
    assert store.newest().step == 3
    store.save(4, arrays_of(4), {})
    assert store.newest().step == 4


def test_what_a_crash_left_aside_is_ignored_and_swept(tmp_path):
    store = saved_store(tmp_path)
    for name in (".writing-000003-step-3", ".removing-000001-step-1"):
        (store.directory / name).mkdir()
        (store.directory / name / "arrays.safetensors").write_bytes(b"half")
    assert store.newest().step == 2
    assert not store.passed_over
    assert len(store.sweep()) == 2
    assert store.newest().step == 2
    assert len(list(store.directory.iterdir())) == 2


def test_another_format_is_passed_over(tmp_path):
    store = saved_store(tmp_path)
    commit(
        store.directory / "000009-step-9",
        {"state.json": [b"{}"]},
        {"format": 99, "serial": 9, "step": 9, "score": None},
    )
    assert store.newest().step == 2
    assert "99" in store.passed_over[0].reason


def save_for_ever(store, pipe):
    """What the child does until it is killed; a forked one, since starting Python takes longer than a save."""
    for step in range(1, 100_000):
        store.save(step, arrays_of(step, 300_000), {"step": step})
        os.write(pipe, f"{step}\n".encode())


@pytest.fixture
def fast_path(tmp_path):
    """Memory where there is some: a child that waits for a busy disk is killed in its fsync alone."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kill_at_random_moments_of_a_save_leaves_the_newest_whole(fast_path):
    draw = random.Random(5)
    torn = 0
    store = Store(fast_path / "checkpoints")
    for _ in range(25):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                save_for_ever(store, writer)
            finally:
                os._exit(1)
        os.close(writer)
        said = os.read(reader, 100)
        time.sleep(draw.random() * 0.06)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(reader, "rb") as rest:
            said = (said + rest.read()).split()
        checkpoint = store.newest()
        assert not store.passed_over
        assert value_of(checkpoint) == checkpoint.step == checkpoint.state["step"]
        # What was said to be saved is there, or a later one.
        assert checkpoint.serial >= 1
        assert checkpoint.step >= int(said[-1])
        torn += bool(store.sweep())
    assert torn >= 5


def mounted(folder, options):
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mounting a tmpfs is not allowed here")
    return folder


@pytest.fixture
def mount(tmp_path):
    folders = []

    def make(options):
        folders.append(mounted(tmp_path / f"disk{len(folders)}", options))
        return folders[-1]

    yield make
    for folder in folders:
        subprocess.run(["umount", folder], check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs")
def test_a_full_disk_keeps_the_old_checkpoint_and_goes_on_when_there_is_room(mount):
    disk = mount("size=1m")
    store = Store(disk / "checkpoints", Policy(latest=5))
    store.save(1, arrays_of(1, 150_000), {})
    with pytest.raises(NotSaved) as caught:
        store.save(2, arrays_of(2, 150_000), {})
    assert caught.value.full
    assert caught.value.code == "FT601"
    assert store.newest().step == 1
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"0" * 4096)
    before = store.newest().step
    with pytest.raises(NotSaved):
        store.save(98, arrays_of(98, 10), {})
    assert store.newest().step == before
    assert not store.sweep()
    ballast.unlink()
    store.save(99, arrays_of(99, 10), {})
    assert store.newest().step == 99


@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs")
def test_no_inodes_left_is_said_so(mount):
    disk = mount("size=4m,nr_inodes=12")
    store = Store(disk / "checkpoints")
    store.save(1, arrays_of(1), {})
    for number in range(99):
        try:
            (disk / f"file{number}").touch()
        except OSError:
            break
    (disk / "file0").unlink()
    with pytest.raises(NotSaved, match="inodes") as caught:
        store.save(2, arrays_of(2), {})
    assert caught.value.full
    assert store.newest().step == 1


@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs")
def test_a_read_only_disk(mount):
    disk = mount("size=4m")
    store = Store(disk / "checkpoints")
    store.save(1, arrays_of(1), {})
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(NotSaved) as caught:
        store.save(2, arrays_of(2), {})
    assert caught.value.code == "FT605"
    assert not caught.value.full
    assert store.newest().step == 1


@pytest.mark.parametrize("name", ["mkdir", "open", "write", "fsync", "rename"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_failure_of_any_call_leaves_the_old_checkpoint(tmp_path, monkeypatch, name, number):
    store = saved_store(tmp_path, steps=(1,))

    def fail(*_arguments, **_named):
        raise OSError(number, os.strerror(number))

    if name == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    elif name == "write":
        opened = Path.open

        def half(self, mode="r", **named):
            if mode == "wb":
                fail()
            return opened(self, mode, **named)

        monkeypatch.setattr(Path, "open", half)
    else:
        original = getattr(Path, name)

        def sometimes(self, *arguments, **named):
            if ".writing-" in str(self):
                fail()
            return original(self, *arguments, **named)

        monkeypatch.setattr(Path, name, sometimes)
    with pytest.raises(NotSaved) as caught:
        store.save(2, arrays_of(2), {})
    assert caught.value.full == (number == errno.ENOSPC)
    monkeypatch.undo()
    assert store.newest().step == 1
    assert len(list(store.directory.iterdir())) == 1
    store.save(2, arrays_of(2), {})
    assert store.newest().step == 2


def test_too_little_room_is_seen_before_anything_is_written_and_older_ones_make_way(tmp_path, monkeypatch):
    store = saved_store(tmp_path, latest=3, steps=(1, 2, 3))
    monkeypatch.setattr("fitune.checkpoint.store.free_bytes", lambda _path: 5)
    with pytest.raises(NotSaved, match="MB needed"):
        store.save(4, arrays_of(4), {})
    assert store.newest().step == 3
    assert len(list(store.directory.iterdir())) == 1


def test_the_background_writer_holds_back_and_reports(tmp_path, monkeypatch):
    store = Store(tmp_path / "checkpoints")
    saved = []
    writer = Writer(store, saved.append)
    writer.submit(1, arrays_of(1, 500_000), {})
    writer.submit(2, arrays_of(2, 500_000), {})
    writer.wait()
    assert [s.step for s in saved] == [1, 2]
    assert not writer.busy

    def fail(*_arguments, **_named):
        raise NotSaved("full", where="", next_step="", code="FT601", full=True)

    monkeypatch.setattr(store, "save", fail)
    writer.submit(3, arrays_of(3), {})
    with pytest.raises(NotSaved):
        writer.wait()
    writer.check()


def test_the_manifest_lists_sizes_and_hashes(tmp_path):
    store = saved_store(tmp_path)
    text = (store.newest().path / "manifest.json").read_text().rpartition("\n}")[0] + "\n}"
    assert set(json.loads(text)["files"]) == {"arrays.safetensors", "state.json"}
    with pytest.raises(Damaged):
        store.load(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="rights of another kind")
def test_files_that_a_library_kept_for_their_owner_get_the_usual_rights(tmp_path):
    (tmp_path / "deep").mkdir()
    kept = [tmp_path / "a", tmp_path / "deep" / "b"]
    before = os.umask(0o027)
    try:
        for path in kept:
            path.touch(mode=0o600)
            path.chmod(0o600)
        usual_modes(tmp_path)
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in kept] == [0o640, 0o640]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "deep"]
