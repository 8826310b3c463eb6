import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from fitune.checkpoint import Unreadable, read_arrays
from fitune.checkpoint.arrays import chunks

from .arrays_of import array_of

shapes = st.lists(st.integers(0, 5), max_size=3)


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8),
        st.tuples(st.sampled_from(["float32", "int64", "uint8", "bool"]), shapes),
        max_size=5,
    ),
    st.integers(1, 9),
)
def test_what_is_written_is_what_safetensors_reads(tmp_path_factory, drawn, chunk_bytes):
    path = tmp_path_factory.mktemp("arrays") / "a.safetensors"
    generator = np.random.default_rng(0)
    values = {name: generator.integers(0, 2, shape).astype(dtype) for name, (dtype, shape) in drawn.items()}
    path.write_bytes(b"".join(bytes(c) for c in chunks({n: array_of(v) for n, v in values.items()}, chunk_bytes)))
    theirs = safetensors.numpy.load_file(path)
    ours = read_arrays(path)
    assert set(theirs) == set(ours) == set(values)
    for name, value in values.items():
        assert (theirs[name] == value).all()
        assert ours[name].shape == value.shape
        assert bytes(ours[name].data) == value.tobytes()


@pytest.mark.parametrize("cut", [0, 4, 20])
def test_a_torn_file_is_unreadable(tmp_path, cut):
    whole = b"".join(bytes(c) for c in chunks({"a": array_of(np.ones(9, np.float32))}))
    (tmp_path / "a").write_bytes(whole[:cut])
    with pytest.raises(Unreadable):
        read_arrays(tmp_path / "a")
