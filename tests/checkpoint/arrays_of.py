import numpy as np

from fitune.checkpoint import Array

NAMES = {"float32": "F32", "int64": "I64", "uint8": "U8", "float64": "F64", "bool": "BOOL"}


def array_of(values):
    return Array(NAMES[str(values.dtype)], values.shape, memoryview(values.tobytes()))


def arrays_of(step, size=2000):
    return {"weight": array_of(np.full(size, step, np.float32)), "step": array_of(np.array(step))}


def value_of(checkpoint):
    """The step that the arrays say; every value must say the same."""
    weight = np.frombuffer(checkpoint.arrays["weight"].data, np.float32)
    assert len(set(weight.tolist())) == 1
    return int(weight[0])
