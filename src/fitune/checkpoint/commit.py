"""A directory that is whole or absent: written aside, hashed, fsynced, renamed, and the rename fsynced.

After a crash at any moment either the new directory is there complete, with a manifest of every file's size and hash,
or it is not there at all; what was written aside carries a name that nothing reads and is removed at the next start.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fitune.checkpoint.disk import not_saved
from fitune.messages import _, system_reason

MANIFEST = "manifest.json"
ASIDE = ".writing-"
TRASH = ".removing-"
_READ_BYTES = 1 << 22


class Damaged(Exception):
    """A directory is not what its manifest says; the text says why."""


def commit(directory: Path, files: Mapping[str, Iterable[bytes | memoryview]], facts: Mapping[str, Any]) -> int:
    """Write ``files`` (name -> chunks of bytes) as ``directory``; returns the bytes written.

    ``facts`` (JSON) go into the manifest beside each file's size and SHA-256.

    Raises:
        NotSaved: disk or inodes full (FT601), not writable (FT605), any other failure of the disk (FT607).
    """
    aside = directory.with_name(f"{ASIDE}{directory.name}")
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        listed = {name: _write(aside / name, chunks) for name, chunks in files.items()}
        manifest = json.dumps({"facts": dict(facts), "files": listed}, indent=1).encode()
        # The manifest's own hash is its last line: a torn or flipped one shows.
        seal = hashlib.sha256(manifest).hexdigest().encode()
        _write(aside / MANIFEST, [manifest, b"\n", seal, b"\n"])
        _fsync_directory(aside)
        aside.rename(directory)
        _fsync_directory(directory.parent)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise not_saved(_("the checkpoint"), directory.parent, error) from error
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return sum(entry["bytes"] for entry in listed.values())


def _write(path: Path, chunks: Iterable[bytes | memoryview]) -> dict[str, Any]:
    digest, written = hashlib.sha256(), 0
    with path.open("wb", buffering=0) as file:
        for chunk in chunks:
            left = memoryview(chunk)
            digest.update(left)
            while len(left):
                # An unbuffered write may take a part: at a limit of the file system it does.
                count = file.write(left)
                written += count
                left = left[count:]
        os.fsync(file.fileno())
    return {"bytes": written, "sha256": digest.hexdigest()}


def usual_modes(directory: Path) -> None:
    """Give every file below ``directory`` the rights of a file that is simply made there.

    safetensors writes a temporary file that only its owner may read, and renames it: the rights stay, and colleagues
    and services under another user cannot load the model. The umask (or the folder's ACL) says what is usual; asked by
    making a file, since the umask itself cannot be read without being changed for every thread.
    """
    if os.name == "nt":
        return
    probe = directory / f"{ASIDE}mode"
    probe.touch(exist_ok=False)
    mode = stat.S_IMODE(probe.stat().st_mode)
    probe.unlink()
    for folder, _folders, names in os.walk(directory):
        for path in (Path(folder, name) for name in names):
            if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) != mode:
                path.chmod(mode)


def _fsync_directory(directory: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_manifest(directory: Path) -> dict[str, Any]:
    """The facts and files of a committed directory.

    Raises:
        Damaged: no manifest, or not the one that was written.
    """
    try:
        raw = (directory / MANIFEST).read_bytes()
    except OSError as error:
        raise Damaged(_("{file}: {error}", file=MANIFEST, error=system_reason(error))) from error
    text, separator, seal = raw.rstrip(b"\n").rpartition(b"\n")
    if not separator or hashlib.sha256(text).hexdigest().encode() != seal:
        raise Damaged(_("{file} does not match its hash", file=MANIFEST))
    return json.loads(text)


def verify(directory: Path) -> dict[str, Any]:
    """Read every file of a committed directory and compare it with the manifest; returns the facts.

    Raises:
        Damaged: naming the first file that is missing, too short, too long or altered.
    """
    manifest = read_manifest(directory)
    for name, entry in manifest["files"].items():
        path = directory / name
        if not path.is_file():
            raise Damaged(_("{file} is missing", file=name))
        size = path.stat().st_size
        if size != entry["bytes"]:
            raise Damaged(_("{file} has {found} of {wanted} bytes", file=name, found=size, wanted=entry["bytes"]))
        digest = hashlib.sha256()
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(_READ_BYTES):
                digest.update(chunk)
        if digest.hexdigest() != entry["sha256"]:
            raise Damaged(_("{file} does not match its hash", file=name))
    return manifest["facts"]


def remove(directory: Path) -> None:
    """Remove a committed directory: renamed first, so that half of it is never taken for a whole one."""
    trash = directory.with_name(f"{TRASH}{directory.name}")
    with contextlib.suppress(FileNotFoundError):
        directory.rename(trash)
    shutil.rmtree(trash, ignore_errors=True)


def sweep(parent: Path) -> list[str]:
    """Remove what a crash left half written or half removed; returns the names."""
    if not parent.is_dir():
        return []
    left = [entry for entry in parent.iterdir() if entry.name.startswith((ASIDE, TRASH))]
    for entry in left:
        shutil.rmtree(entry, ignore_errors=True)
    return [entry.name for entry in left]
