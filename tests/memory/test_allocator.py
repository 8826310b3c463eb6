"""The allocator model against the written rules, and properties that hold for any sequence."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitune.memory.allocator import Allocator, Block, DoesNotFit, rounded_bytes, segment_bytes

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("size", "rounded"), [(1, 512), (511, 512), (512, 512), (513, 1024), (MIB, MIB), (MIB + 1, MIB + 512)]
)
def test_sizes_round_up_to_512(size: int, rounded: int) -> None:
    assert rounded_bytes(size) == rounded


@pytest.mark.parametrize(
    ("size", "segment"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 512, 12 * MIB),
        (33 * MIB, 34 * MIB),
    ],
)
def test_segment_sizes(size: int, segment: int) -> None:
    assert segment_bytes(size) == segment
    allocator = Allocator()
    allocator.allocate(size)
    assert allocator.reserved_bytes == segment


def test_an_empty_tensor_takes_nothing() -> None:
    allocator = Allocator()
    assert allocator.allocate(0) is None
    allocator.free(None)
    assert allocator.reserved_bytes == 0


def test_small_pool_splits_to_512_bytes() -> None:
    allocator = Allocator()
    for _ in range(4096):
        allocator.allocate(1)
    assert allocator.reserved_bytes == 2 * MIB
    allocator.allocate(1)
    assert allocator.reserved_bytes == 4 * MIB


def test_large_pool_keeps_a_rest_of_one_mebibyte_in_the_block() -> None:
    allocator = Allocator()
    allocator.allocate(19 * MIB)  # a segment of its own: 20 MiB, rest 1 MiB, which is not more than 1 MiB
    assert allocator.allocated_bytes == 20 * MIB
    allocator = Allocator()
    for _ in range(2):
        allocator.allocate(9 * MIB)  # 20 MiB segment: 9 + 9 leaves 2 MiB, which is split off
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (18 * MIB, 20 * MIB)
    allocator.allocate(2 * MIB)
    assert allocator.reserved_bytes == 20 * MIB


def test_small_and_large_requests_never_share_a_segment() -> None:
    allocator = Allocator()
    allocator.allocate(2 * MIB)  # leaves 18 MiB of a large segment
    allocator.allocate(512)
    assert allocator.reserved_bytes == 22 * MIB


def test_best_fit_takes_the_smallest_then_the_lowest_address() -> None:
    allocator = Allocator()
    blocks = [allocator.allocate(size * MIB) for size in (40, 30, 12, 30)]
    for block in blocks:
        allocator.free(block)
    taken = allocator.allocate(25 * MIB)
    assert taken is not None
    assert blocks[1] is not None
    assert taken.address == blocks[1].address
    again = allocator.allocate(29 * MIB)
    assert again is not None
    assert blocks[3] is not None
    assert again.address == blocks[3].address


def test_freed_neighbours_merge() -> None:
    allocator = Allocator()
    first, second, third = (allocator.allocate(6 * MIB) for _ in range(3))
    for block in (first, third, second):
        allocator.free(block)
    assert [block.size_bytes for block in allocator.cached_blocks()] == [20 * MIB]


def test_a_miss_gives_back_segments_without_live_blocks_only() -> None:
    allocator = Allocator(64 * MIB)
    whole = allocator.allocate(20 * MIB)
    first = allocator.allocate(6 * MIB)
    second = allocator.allocate(6 * MIB)
    allocator.free(whole)
    allocator.free(second)
    assert allocator.reserved_bytes == 40 * MIB
    allocator.allocate(40 * MIB)  # needs the 20 MiB segment back; the split one stays
    assert allocator.reserved_bytes == 60 * MIB
    assert allocator.retries == 1
    with pytest.raises(DoesNotFit) as refused:
        allocator.allocate(15 * MIB)
    assert refused.value.segment_bytes == 16 * MIB
    allocator.free(first)


def test_the_limit_counts_segments_not_tensors() -> None:
    with pytest.raises(DoesNotFit) as refused:
        Allocator(10 * MIB).allocate(2 * MIB)
    assert refused.value.segment_bytes == 20 * MIB


def test_freeing_twice_is_a_bug() -> None:
    allocator = Allocator()
    block = allocator.allocate(512)
    allocator.free(block)
    with pytest.raises(ValueError, match="not in use"):
        allocator.free(block)


def test_expandable_segments_grow_by_pages_and_join() -> None:
    allocator = Allocator(expandable_segments=True)
    first = allocator.allocate(30 * MIB)
    assert allocator.reserved_bytes == 40 * MIB
    second = allocator.allocate(30 * MIB)  # 10 MiB are there, 20 more are mapped
    assert allocator.reserved_bytes == 60 * MIB
    allocator.free(first)
    allocator.free(second)
    assert [block.size_bytes for block in allocator.cached_blocks()] == [60 * MIB]
    allocator.allocate(60 * MIB)
    assert allocator.reserved_bytes == 60 * MIB


def test_expandable_segments_give_back_whole_free_pages() -> None:
    allocator = Allocator(expandable_segments=True)
    first = allocator.allocate(50 * MIB)
    second = allocator.allocate(10 * MIB)
    allocator.free(first)
    allocator.release_cached()
    assert allocator.reserved_bytes == 20 * MIB  # 10 MiB of it free, beside the live block
    allocator.allocate(45 * MIB)
    assert allocator.reserved_bytes == 60 * MIB  # two pages below, joined to the free 10 MiB
    allocator.free(second)


def test_variable_shapes_fragment_less_with_expandable_segments() -> None:
    def peak(expandable: bool) -> int:
        allocator = Allocator(expandable_segments=expandable)
        for length in range(11, 40):
            blocks = [allocator.allocate(length * MIB) for _ in range(4)]
            for block in blocks:
                allocator.free(block)
        return allocator.peak_reserved_bytes

    assert peak(True) < peak(False)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "take", "give", "empty"]),
        st.one_of(st.integers(1, 4 * KIB), st.integers(1, 3 * MIB), st.integers(1, 64 * MIB)),
        st.integers(0, 10**6),
    ),
    max_size=120,
)


def run(steps: list[tuple[str, int, int]], limit: int | None, expandable: bool) -> tuple[Allocator, list[Block]]:
    allocator, live = Allocator(limit, expandable_segments=expandable), list[Block]()
    for what, size, pick in steps:
        if what == "take":
            try:
                block = allocator.allocate(size)
            except DoesNotFit:
                assert limit is not None
                assert allocator.reserved_bytes + size > limit or segment_bytes(rounded_bytes(size)) > size
            else:
                assert block is not None
                live.append(block)
        elif what == "give" and live:
            allocator.free(live.pop(pick % len(live)))
        elif what == "empty":
            allocator.release_cached()
        check(allocator, live, limit)
    return allocator, live


def check(allocator: Allocator, live: list[Block], limit: int | None) -> None:
    cached = allocator.cached_blocks()
    stretches = sorted((b.address, b.address + b.size_bytes) for b in [*live, *cached])
    assert all(end <= start for (_, end), (start, _) in pairwise(stretches)), "overlap"
    assert allocator.allocated_bytes == sum(b.size_bytes for b in live)
    assert allocator.reserved_bytes == sum(b.size_bytes for b in [*live, *cached]), "conservation"
    assert allocator.allocated_bytes <= allocator.reserved_bytes <= allocator.peak_reserved_bytes
    assert limit is None or allocator.reserved_bytes <= limit
    for block in cached:
        assert not block.used
        after = block.following
        assert after is None or after.used or not after.mapped, "free neighbours that did not merge"
        assert after is None or (after.previous is block and after.address == block.address + block.size_bytes)


@settings(max_examples=120, deadline=None)
@given(STEPS, st.sampled_from([None, 100 * MIB, 300 * MIB]), st.booleans())
def test_any_sequence_keeps_the_books(steps: list[tuple[str, int, int]], limit: int | None, expandable: bool) -> None:
    allocator, live = run(steps, limit, expandable)
    again, _ = run(steps, limit, expandable)
    assert (again.peak_reserved_bytes, again.peak_allocated_bytes, again.retries) == (
        allocator.peak_reserved_bytes,
        allocator.peak_allocated_bytes,
        allocator.retries,
    )
    for block in live:
        allocator.free(block)
    allocator.release_cached()
    assert allocator.allocated_bytes == allocator.reserved_bytes == 0
