"""A model of PyTorch's CUDA caching allocator, from its written rules.

Sizes round up to 512 B. A request of at most 1 MiB is served from 2 MiB segments (the small pool), one below 10 MiB
from 20 MiB segments, anything else from a segment of its own, rounded up to 2 MiB (the large pool). The smallest cached
block that is large enough is taken, at equal size the one with the lowest address; it is split when the rest is worth
keeping (512 B in the small pool, more than 1 MiB in the large one). Freed blocks merge with free neighbours of their
segment. On a miss a segment is asked from the device; when the device has no room, all cached segments without a live
block are given back and the request is tried once more.

With ``expandable_segments`` each pool has one segment that grows by pages (2 MiB small, 20 MiB large), every rest of
512 B or more is split off, and on a miss every wholly free page is given back.

Source of the rules: pytorch/pytorch ``c10/cuda/CUDACachingAllocator.cpp`` and ``docs/source/notes/cuda.rst``.
One stream is modelled: training steps run on one. ``max_split_size_mb``, ``garbage_collection_threshold`` and
``roundup_power2_divisions`` are off, as they are by default.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass

MIN_BLOCK_BYTES = 512
SMALL_REQUEST_BYTES = 1 << 20
SMALL_SEGMENT_BYTES = 2 << 20
LARGE_SEGMENT_BYTES = 20 << 20
OWN_SEGMENT_BYTES = 10 << 20
ROUND_SEGMENT_BYTES = 2 << 20


class DoesNotFit(Exception):
    """The device has no room for a segment, even after the cached ones were given back.

    ``segment_bytes`` is what was asked from the device (PyTorch prints this one, not the tensor's size).
    """

    def __init__(self, request_bytes: int, segment_bytes: int) -> None:
        self.request_bytes, self.segment_bytes = request_bytes, segment_bytes
        super().__init__(request_bytes, segment_bytes)


def rounded_bytes(size_bytes: int) -> int:
    """What a request takes inside a segment."""
    return max(MIN_BLOCK_BYTES, -(-size_bytes // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES)


def segment_bytes(block_bytes: int) -> int:
    """What is asked from the device when no cached block of ``block_bytes`` is there."""
    if block_bytes <= SMALL_REQUEST_BYTES:
        return SMALL_SEGMENT_BYTES
    if block_bytes < OWN_SEGMENT_BYTES:
        return LARGE_SEGMENT_BYTES
    return -(-block_bytes // ROUND_SEGMENT_BYTES) * ROUND_SEGMENT_BYTES


@dataclass(slots=True, eq=False)
class Block:
    """A stretch of one segment: in use, cached, or (expandable segments) not backed by memory."""

    address: int
    size_bytes: int
    pool: "_Pool"
    used: bool = False
    mapped: bool = True
    previous: "Block | None" = None
    following: "Block | None" = None


class _Pool:
    """The cached blocks of one pool, ordered by (size, address)."""

    __slots__ = ("free", "head", "page_bytes", "small")

    def __init__(self, small: bool) -> None:
        self.small = small
        self.page_bytes = SMALL_SEGMENT_BYTES if small else LARGE_SEGMENT_BYTES
        self.free: list[tuple[int, int, Block]] = []
        self.head: Block | None = None  # of the expandable segment

    def add(self, block: Block) -> None:
        insort(self.free, (block.size_bytes, block.address, block))

    def remove(self, block: Block) -> None:
        del self.free[bisect_left(self.free, (block.size_bytes, block.address))]


class Allocator:
    """Replays allocations and frees; knows what is allocated and reserved, and the peaks of both.

    ``limit_bytes`` caps what is reserved (the card's memory without context, or a fraction of it); None: no limit.
    Addresses are handed out upwards and never twice, so ties are settled the same way in every run.
    """

    def __init__(self, limit_bytes: int | None = None, *, expandable_segments: bool = False) -> None:
        self.limit_bytes = limit_bytes
        self.expandable_segments = expandable_segments
        self.allocated_bytes = self.reserved_bytes = 0
        self.peak_allocated_bytes = self.peak_reserved_bytes = 0
        self.retries = 0
        """How often cached segments were given back to serve a request: each one stalls a real card."""
        self._small, self._large = _Pool(small=True), _Pool(small=False)
        self._next_address = 0

    def allocate(self, size_bytes: int) -> Block | None:
        """A block for ``size_bytes``; None for 0 B, which PyTorch serves without memory. Raises DoesNotFit."""
        if size_bytes <= 0:
            return None
        wanted = rounded_bytes(size_bytes)
        pool = self._small if wanted <= SMALL_REQUEST_BYTES else self._large
        block = self._cached(pool, wanted) or self._fresh(pool, wanted)
        if block is None:
            self.retries += 1
            self.release_cached()
            block = self._fresh(pool, wanted)
            if block is None:
                raise DoesNotFit(size_bytes, segment_bytes(wanted))
        self._split(block, wanted)
        block.used = True
        self.allocated_bytes += block.size_bytes
        self.peak_allocated_bytes = max(self.peak_allocated_bytes, self.allocated_bytes)
        return block

    def free(self, block: Block | None) -> None:
        """Give a block back to the cache; None is ignored, as PyTorch does with empty tensors."""
        if block is None:
            return
        if not block.used:
            raise ValueError("block is not in use")
        block.used = False
        self.allocated_bytes -= block.size_bytes
        self._merge(block)
        block.pool.add(block)

    def release_cached(self) -> None:
        """``torch.cuda.empty_cache``: segments (or pages) without a live block go back to the device."""
        for pool in (self._large, self._small):
            if self.expandable_segments:
                self._unmap_pages(pool)
                continue
            kept: list[tuple[int, int, Block]] = []
            for entry in pool.free:
                block = entry[2]
                if block.previous is None and block.following is None:
                    self.reserved_bytes -= block.size_bytes
                else:
                    kept.append(entry)
            pool.free = kept

    def reset_peaks(self) -> None:
        """``torch.cuda.reset_peak_memory_stats``."""
        self.peak_allocated_bytes, self.peak_reserved_bytes = self.allocated_bytes, self.reserved_bytes

    def cached_blocks(self) -> list[Block]:
        """Free blocks that are backed by memory."""
        return [entry[2] for pool in (self._small, self._large) for entry in pool.free]

    # A miss, a hit, a split, a merge ------------------------------------------------------------------------------

    def _cached(self, pool: _Pool, wanted: int) -> Block | None:
        index = bisect_left(pool.free, (wanted,))
        if index == len(pool.free):
            return None
        if self.expandable_segments:
            # The block at the growing end counts with what it can grow to: another that fits is preferred to it.
            while index + 1 < len(pool.free) and _growable(pool.free[index + 1][2]) < _growable(pool.free[index][2]):
                index += 1
        return pool.free.pop(index)[2]

    def _fresh(self, pool: _Pool, wanted: int) -> Block | None:
        size = segment_bytes(wanted)
        if self.limit_bytes is not None and self.reserved_bytes + size > self.limit_bytes:
            return None
        if self.expandable_segments:
            return self._grow(pool, wanted)
        block = Block(self._next_address, size, pool)
        self._next_address += size + ROUND_SEGMENT_BYTES
        self._reserve(size)
        return block

    def _reserve(self, size: int) -> None:
        self.reserved_bytes += size
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)

    def _split(self, block: Block, wanted: int) -> None:
        rest = block.size_bytes - wanted
        small_rest_kept = block.pool.small or self.expandable_segments
        if not (rest >= MIN_BLOCK_BYTES if small_rest_kept else rest > SMALL_REQUEST_BYTES):
            return
        remainder = Block(block.address + wanted, rest, block.pool, previous=block, following=block.following)
        if block.following is not None:
            block.following.previous = remainder
        block.following = remainder
        block.size_bytes = wanted
        block.pool.add(remainder)

    def _merge(self, block: Block) -> None:
        """Swallow the free neighbours of the same kind (backed by memory or not)."""
        before, after = block.previous, block.following
        if before is not None and not before.used and before.mapped == block.mapped:
            if before.mapped:
                block.pool.remove(before)
            block.address, block.size_bytes = before.address, block.size_bytes + before.size_bytes
            block.previous = before.previous
            if before.previous is not None:
                before.previous.following = block
            if block.pool.head is before:
                block.pool.head = block
        if after is not None and not after.used and after.mapped == block.mapped:
            if after.mapped:
                block.pool.remove(after)
            block.size_bytes += after.size_bytes
            block.following = after.following
            if after.following is not None:
                after.following.previous = block

    # Expandable segments ------------------------------------------------------------------------------------------

    def _grow(self, pool: _Pool, wanted: int) -> Block | None:
        """Back the lowest stretch that can hold ``wanted`` with memory, page by page."""
        if pool.head is None:
            # Address space without end; only mapped pages count.
            start = pool.page_bytes << 36
            pool.head = Block(start, start, pool, mapped=False)
        block = pool.head
        while block.used or _reach(block) < wanted:
            if block.following is None:
                raise AssertionError("the address space of an expandable segment is used up")
            block = block.following
        while not block.mapped or block.size_bytes < wanted:
            gap = block if not block.mapped else block.following
            if gap is None or gap.mapped:
                raise AssertionError("a stretch that can grow has no unmapped neighbour")
            missing = wanted - (block.size_bytes if block.mapped else 0)
            pages = min(-(-missing // pool.page_bytes) * pool.page_bytes, gap.size_bytes)
            if self.limit_bytes is not None and self.reserved_bytes + pages > self.limit_bytes:
                if block.mapped and block not in (entry[2] for entry in pool.free):
                    pool.add(block)
                return None
            self._map(gap, pages)
            block = gap
        return block

    def _map(self, gap: Block, size: int) -> None:
        """Back the first ``size`` bytes of ``gap`` with memory; it comes back merged, and in no list."""
        self._reserve(size)
        if size < gap.size_bytes:
            rest = Block(gap.address + size, gap.size_bytes - size, gap.pool, False, False, gap, gap.following)
            if gap.following is not None:
                gap.following.previous = rest
            gap.following = rest
            gap.size_bytes = size
        gap.mapped = True
        self._merge(gap)

    def _unmap_pages(self, pool: _Pool) -> None:
        page = pool.page_bytes
        for _, _, block in list(pool.free):
            first = -(-block.address // page) * page
            last = (block.address + block.size_bytes) // page * page
            if last <= first:
                continue
            pool.remove(block)
            if first > block.address:
                head = Block(block.address, first - block.address, pool, previous=block.previous, following=block)
                if block.previous is not None:
                    block.previous.following = head
                if pool.head is block:
                    pool.head = head
                block.previous = head
                pool.add(head)
            end = block.address + block.size_bytes
            if last < end:
                tail = Block(last, end - last, pool, previous=block, following=block.following)
                if block.following is not None:
                    block.following.previous = tail
                block.following = tail
                pool.add(tail)
            block.address, block.size_bytes, block.mapped = first, last - first, False
            self.reserved_bytes -= block.size_bytes
            self._merge(block)


def _growable(block: Block) -> int:
    """Size of a cached block with the unmapped stretch right above it."""
    above = block.following
    return block.size_bytes + (above.size_bytes if above is not None and not above.mapped else 0)


def _reach(block: Block) -> int:
    """What a free stretch can hold once the unmapped stretches and free blocks above it are joined to it."""
    total, above = block.size_bytes, block.following
    while above is not None and not above.used:
        total += above.size_bytes
        above = above.following
    return total
