"""No room on the disk: known before step 1, survived in the middle, and never a traceback or half a file."""

import errno
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from fitune.checkpoint import Store
from fitune.runs import Run
from fitune.training import Saving, train
from fitune.values import Refusal

from .test_resume import job_of, weights
from .tiny import write_model, write_rows


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disk")
    # Large enough for its weights, and not pages of the file system, to count.
    write_model(folder / "model", 8000)
    write_rows(folder / "train.tsv")
    write_rows(folder / "dev.tsv", 20, seed=1)
    return folder


@pytest.fixture(scope="module")
def undisturbed(place):
    return train(job_of(place), run_directory=place / "undisturbed")


def warnings_of(run, code):
    return [e.data["text"] for e in run.events() if e.kind == "warning" and e.data["code"] == code]


def end_of(run):
    last = run.events()[-1]
    return last.kind, last.data["reason"], last.data["exit_code"]


class BadDisk:
    """Refuses one kind of call below ``folder`` while ``left`` is above zero; each refusal counts."""

    def __init__(self, monkeypatch, folder, name, number):
        self.folder, self.number, self.left = str(folder), number, 0
        if name == "fsync":
            original = os.fsync

            def fsync(descriptor):
                self.check(os.readlink(f"/proc/self/fd/{descriptor}"))
                original(descriptor)

            monkeypatch.setattr(os, "fsync", fsync)
        else:
            method = getattr(Path, name)

            def call(path, *arguments, **named):
                if name != "open" or {*"wax+"} & {*(arguments[0] if arguments else named.get("mode", "r"))}:
                    self.check(str(path))
                return method(path, *arguments, **named)

            monkeypatch.setattr(Path, name, call)

    def check(self, path):
        if self.left and path.startswith(self.folder):
            self.left -= 1
            raise OSError(self.number, os.strerror(self.number), path)


def breaks_at(step, disk, times):
    def listen(event):
        if event.kind == "step" and event.step == step:
            disk.left = times

    return listen


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize(
    ("name", "number"),
    [("fsync", errno.ENOSPC), ("rename", errno.EDQUOT), ("mkdir", errno.ENOSPC), ("open", errno.EDQUOT)],
)
def test_a_run_waits_for_room_and_ends_with_the_same_bits(place, undisturbed, tmp_path, monkeypatch, name, number):
    disk = BadDisk(monkeypatch, tmp_path / "run", name, number)
    saving = Saving(every_steps=5, disk_wait_seconds=60.0)
    monkeypatch.setattr("fitune.training.room._LOOK_SECONDS", 0.05)
    run = train(job_of(place), run_directory=tmp_path / "run", saving=saving, listeners=[breaks_at(9, disk, 4)])
    assert end_of(run) == ("stopped", "finished", 0)
    told = warnings_of(run, "FT601")
    assert "waits up to 1 minutes" in told[0]
    assert "going on" in told[-1]
    assert weights(run) == weights(undisturbed)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize(
    ("name", "number", "code"),
    [("fsync", errno.ENOSPC, "FT601"), ("rename", errno.EROFS, "FT605"), ("open", errno.EIO, "FT607")],
)
def test_a_disk_that_stays_bad_ends_the_run_and_the_same_command_goes_on(
    place, undisturbed, tmp_path, monkeypatch, name, number, code
):
    disk = BadDisk(monkeypatch, tmp_path / "run", name, number)
    saving = Saving(every_steps=5, disk_wait_seconds=0.3)
    run = train(job_of(place), run_directory=tmp_path / "run", saving=saving, listeners=[breaks_at(12, disk, 10**6)])
    assert end_of(run) == ("stopped", "disk", 74)
    assert warnings_of(run, code)
    disk.left = 0
    store = Store(run.checkpoints_path)
    assert store.newest().step in (5, 10)
    assert not store.passed_over
    assert not [p.name for p in run.directory.iterdir() if p.name.startswith(".model")]
    run = train(job_of(place), run_directory=tmp_path / "run")
    assert end_of(run) == ("stopped", "finished", 0)
    assert weights(run) == weights(undisturbed)


@pytest.fixture
def mount():
    folders = []

    def mounted(options):
        folder = Path(tempfile.mkdtemp(prefix="fitune-tmpfs-"))
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True)
        if done.returncode:
            folder.rmdir()
            pytest.skip("cannot mount a tmpfs here")
        folders.append(folder)
        return folder

    yield mounted
    for folder in folders:
        subprocess.run(["umount", "-l", folder], check=False)
        folder.rmdir()


def fill(disk):
    with (disk / "ballast").open("ab", buffering=0) as file:
        try:
            while file.write(b"0" * 4096):
                pass
        except OSError:
            return


def fill_inodes(disk):
    for number in range(10_000):
        try:
            (disk / f"file{number}").touch()
        except OSError:
            return


def empty(disk):
    for path in [*disk.glob("ballast"), *disk.glob("file*")]:
        path.unlink()


linux = pytest.mark.skipif(sys.platform != "linux", reason="tmpfs")


@linux
def test_too_little_for_the_model_is_refused_before_the_first_step(place, mount):
    disk = mount("size=500k")
    with pytest.raises(Refusal, match="the finished model needs 1 MB") as refused:
        train(job_of(place), run_directory=disk / "run", saving=Saving(disk_wait_seconds=0.3))
    assert refused.value.code == "FT606"
    assert "--out" in refused.value.next_step
    assert not Run(disk / "run").events()


@linux
def test_room_for_the_model_alone_is_told_before_the_first_step_and_enough(place, undisturbed, mount):
    disk = mount("size=3m")
    run = train(job_of(place), run_directory=disk / "run", saving=Saving(every_steps=3, disk_wait_seconds=0.3))
    first = [e.kind for e in run.events()].index("step")
    assert "FT606" in [e.data.get("code") for e in run.events()[:first]]
    assert end_of(run) == ("stopped", "finished", 0)
    assert weights(run) == weights(undisturbed)


@linux
@pytest.mark.parametrize("fills", [fill, fill_inodes])
def test_a_full_disk_in_the_middle(place, undisturbed, mount, fills):
    disk = mount("size=12m,nr_inodes=200")

    def listen(event):
        if event.kind == "step" and event.step == 9:
            fills(disk)
        if event.kind == "warning" and "waits" in event.data["text"]:
            # Who watches from elsewhere reads it too: a reserve was kept for that.
            assert "waits" in Run(disk / "run").events()[-1].data["text"]
            threading.Timer(0.5, empty, [disk]).start()

    saving = Saving(every_steps=5, disk_wait_seconds=60.0)
    run = train(job_of(place), run_directory=disk / "run", saving=saving, listeners=[listen])
    assert end_of(run) == ("stopped", "finished", 0)
    assert any(("inodes" in text) == (fills is fill_inodes) for text in warnings_of(run, "FT601"))
    assert weights(run) == weights(undisturbed)


@linux
@pytest.mark.parametrize("fills", [fill, fill_inodes])
def test_a_disk_that_stays_full(place, undisturbed, mount, fills):
    disk = mount("size=12m,nr_inodes=200")

    def listen(event):
        if event.kind == "step" and event.step >= 12:
            fills(disk)  # again and again: older states make way for a new one

    saving = Saving(every_steps=5, disk_wait_seconds=0.3)
    run = train(job_of(place), run_directory=disk / "run", saving=saving, listeners=[listen])
    assert end_of(run) == ("stopped", "disk", 74)
    assert end_of(Run(disk / "run")) == ("stopped", "disk", 74)
    empty(disk)
    run = train(job_of(place), run_directory=disk / "run", saving=Saving(disk_wait_seconds=0.3))
    assert weights(run) == weights(undisturbed)


@linux
def test_a_read_only_directory_is_refused_before_anything_is_read(place, mount):
    disk = mount("size=2m")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    begin = time.monotonic()
    with pytest.raises(OSError, match="Read-only") as refused:
        train(job_of(place), run_directory=disk / "run")
    assert str(disk) in str(refused.value.filename)
    assert time.monotonic() - begin < 5
