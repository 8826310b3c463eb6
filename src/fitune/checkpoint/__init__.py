"""Checkpoints that are whole or absent: store, commit, policy, lock. An island: no torch, no pickle."""

from fitune.checkpoint.arrays import ITEM_BYTES, Array, Unreadable, read_arrays
from fitune.checkpoint.commit import Damaged, commit, remove, sweep, usual_modes, verify
from fitune.checkpoint.disk import NotSaved, disk_error, free_bytes, inodes_left, not_saved, too_little_room
from fitune.checkpoint.lock import Lock, Locked, describe_process
from fitune.checkpoint.policy import Entry, Forecast, Policy, forecast, superfluous
from fitune.checkpoint.store import Checkpoint, PassedOver, Saved, Store
from fitune.checkpoint.writer import Writer

__all__ = [
    "ITEM_BYTES",
    "Array",
    "Checkpoint",
    "Damaged",
    "Entry",
    "Forecast",
    "Lock",
    "Locked",
    "NotSaved",
    "PassedOver",
    "Policy",
    "Saved",
    "Store",
    "Unreadable",
    "Writer",
    "commit",
    "describe_process",
    "disk_error",
    "forecast",
    "free_bytes",
    "inodes_left",
    "not_saved",
    "read_arrays",
    "remove",
    "superfluous",
    "sweep",
    "too_little_room",
    "usual_modes",
    "verify",
]
