"""The five families as the versions since 1.0 word them, and what is none of them."""

import pytest
import torch

from fitune.microbatch import out_of_memory
from fitune.microbatch.oom import forget

GIB, MIB = 2**30, 2**20

OURS = [
    (
        "allocator",
        torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.00 GiB"
            " is free. Including non-PyTorch memory, this process has 22.66 GiB memory in use. Of the allocated memory"
            " 21.50 GiB is allocated by PyTorch, and 618.00 MiB is reserved by PyTorch but unallocated. If reserved"
            " but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True"
        ),
    ),
    (
        "allocator",
        RuntimeError(
            "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.50 GiB total capacity; 6.25 GiB already"
            " allocated; 17.50 MiB free; 6.50 GiB reserved in total by PyTorch) If reserved memory is >> allocated"
            " memory try setting max_split_size_mb to avoid fragmentation."
        ),
    ),
    (
        "allocator",
        RuntimeError(
            "CUDA out of memory. Tried to allocate 58.00 MiB (GPU 0; 7.93 GiB total capacity; 6.88 GiB already"
            " allocated; 37.50 MiB free; 82.85 MiB cached)"
        ),
    ),
    (
        "allocator",
        torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacty of 10.75 GiB of which 8.69 MiB"
            " is free. Process 4021 has 10.73 GiB memory in use."
        ),
    ),
    ("allocator", RuntimeError("HIP out of memory. Tried to allocate 4.00 GiB (GPU 1; 15.98 GiB total capacity)")),
    (
        "allocator",
        RuntimeError(
            "Caught RuntimeError in replica 0 on device 0.\nOriginal Traceback (most recent call last):\n  ...\n"
            "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.50 GiB total capacity)"
        ),
    ),
    (
        "driver",
        RuntimeError(
            "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call"
        ),
    ),
    ("driver", RuntimeError("CUDA driver error: out of memory")),
    ("driver", RuntimeError("cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/THCGeneral.cpp:50")),
    ("cublas", RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")),
    ("cublas", RuntimeError("cublas runtime error : resource allocation failed at THC/THCGeneral.cpp:216")),
    ("cudnn", RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED")),
    ("cudnn", RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR\nYou can try to repro this exception")),
    ("cudnn", RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED")),
    (
        "nccl",
        RuntimeError(
            "NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled cuda error, NCCL version 2.18.1\n"
            "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'"
        ),
    ),
    ("nccl", RuntimeError("NCCL error: unhandled cuda error\nLast error:\nCuda failure 'out of memory'")),
]

OTHERS = [
    ValueError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    MemoryError("out of memory"),
    OSError(28, "No space left on device"),
    RuntimeError("CUDA error: device-side assert triggered"),
    RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
    RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(...)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
    RuntimeError("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory: 4096 bytes"),
    RuntimeError("NCCL error: unhandled cuda error\nLast error:\nCuda failure 'invalid argument'"),
    RuntimeError("Cuda failure 2 'out of memory'"),
    RuntimeError("row 7 of train.txt says 'CUDA out of memory. Tried to allocate 2.00 GiB'"),
    RuntimeError("The size of tensor a (4) must match the size of tensor b (3)"),
    KeyboardInterrupt(),
    KeyError("CUDA error: out of memory"),
]


@pytest.mark.parametrize(("family", "error"), OURS, ids=lambda x: str(x)[:40])
def test_the_five_families(family, error):
    assert out_of_memory(error).family == family


@pytest.mark.parametrize("error", OTHERS, ids=lambda x: str(x)[:40])
def test_nothing_else(error):
    assert out_of_memory(error) is None


def test_figures_of_the_message():
    new, old = (out_of_memory(error) for _, error in OURS[:2])
    assert (new.requested_bytes, new.free_bytes) == (2 * GIB, GIB)
    assert (new.allocated_bytes, new.unallocated_bytes) == (int(21.5 * GIB), 618 * MIB)
    assert old.requested_bytes == 20 * MIB
    assert (old.total_bytes, old.allocated_bytes) == (int(7.5 * GIB), int(6.25 * GIB))
    assert (old.free_bytes, old.reserved_bytes) == (int(17.5 * MIB), int(6.5 * GIB))
    typo = out_of_memory(OURS[3][1])
    assert typo.total_bytes == int(10.75 * GIB)


def test_an_internal_error_of_cudnn_is_not_certain():
    assert not out_of_memory(OURS[12][1]).certain
    assert out_of_memory(OURS[13][1]).certain


def test_forget_frees_what_the_frames_and_causes_hold():
    import weakref

    class Big:
        pass

    kept = []

    def deep():
        big = Big()
        kept.append(weakref.ref(big))
        try:
            raise RuntimeError("first")
        except RuntimeError as error:
            raise RuntimeError("second") from error

    try:
        deep()
    except RuntimeError as error:
        held = error
    assert kept[0]() is not None
    forget(held)
    assert kept[0]() is None
    assert held.__cause__ is None
