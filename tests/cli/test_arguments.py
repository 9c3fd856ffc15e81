"""What a user types for models and inputs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from htvm.errors import InputError, ModelError
from htvm.model import TensorInfo
from htvm.tools.cli.arguments import open_model, read_inputs, read_samples

INFO = TensorInfo("input", (1, 4), "int8", 0.5, 0)
TWO = (INFO, TensorInfo("other", (1, 2), "int8"))


def test_zoo_models_by_name_and_seed() -> None:
    assert open_model("zoo:toyadmos").name == "toyadmos"
    assert open_model("zoo:toyadmos@3").name == "toyadmos"
    assert open_model("zoo:toyadmos:ternary").name == "toyadmos_ternary"
    assert open_model("zoo:toyadmos:mixed@3").name == "toyadmos_mixed"
    with pytest.raises(ModelError, match="seed 'x'"):
        open_model("zoo:toyadmos@x")


def test_random_inputs_follow_the_seed() -> None:
    first, again, other = (read_inputs(text, [INFO]) for text in ("random", "random:0", "random:1"))
    np.testing.assert_array_equal(first[0], again[0])  # type: ignore[index]
    assert (first[0] != other[0]).any()  # type: ignore[index]
    assert first[0].shape == (1, 4) and first[0].dtype == np.int8  # type: ignore[index]
    with pytest.raises(InputError, match="seed"):
        read_inputs("random:one", [INFO])


def test_files_by_name(tmp_path: Path) -> None:
    x, y = np.ones((1, 4), np.int8), np.zeros((1, 2), np.int8)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "one.npz", x)
    np.savez(tmp_path / "own.npz", input=x)
    np.savez(tmp_path / "wrong.npz", whatever=x)
    np.savez(tmp_path / "two.npz", other=y, input=x)
    with pytest.raises(InputError, match="no input 'whatever'"):
        read_inputs(str(tmp_path / "wrong.npz"), [INFO])
    for name in ("x.npy", "one.npz", "own.npz"):
        found = read_inputs(str(tmp_path / name), [INFO])
        assert isinstance(found, dict) and list(found) == ["input"]
        np.testing.assert_array_equal(found["input"], x)
    found = read_inputs(str(tmp_path / "two.npz"), TWO)
    assert isinstance(found, dict) and set(found) == {"input", "other"}


@pytest.mark.parametrize("content", [b"", b"nothing numpy knows", b"PK\x03\x04 a broken zip"])
def test_files_that_hold_no_arrays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.npz"):
        read_inputs(str(path), [INFO])


def test_damaged_files(tmp_path: Path) -> None:
    """A header may promise more than memory holds; compressed data may be no data."""
    x = np.arange(4, dtype=np.int8)[None]
    np.save(tmp_path / "x.npy", x)
    np.savez_compressed(tmp_path / "x.npz", input=x)
    plain = (tmp_path / "x.npy").read_bytes()
    files = [plain, (tmp_path / "x.npz").read_bytes()]
    (tmp_path / "vast.npy").write_bytes(plain.replace(b"(1, 4)", b"(9999999999999,)"))
    with pytest.raises(InputError, match=r"vast\.npy"):
        read_inputs(str(tmp_path / "vast.npy"), [INFO])
    rng = np.random.default_rng(3)
    refused = 0
    for trial in range(200):
        data = bytearray(files[trial % 2])
        for at in rng.integers(0, len(data), 3):
            data[at] = int(rng.integers(256))
        (tmp_path / "bad.npy").write_bytes(data)
        try:
            read_inputs(str(tmp_path / "bad.npy"), [INFO])
        except InputError:
            refused += 1
    assert refused > 100


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(InputError, match="this is a pipe"):
        read_inputs(str(tmp_path / "pipe.npz"), [INFO])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.npy"):
        read_inputs(str(tmp_path / "absent.npy"), [INFO])


def test_arrays_of_objects_are_not_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError):
        read_inputs(str(tmp_path / "o.npy"), [INFO])


def test_samples(tmp_path: Path) -> None:
    assert len(read_samples("random:5", [INFO], 3)) == 3
    np.testing.assert_array_equal(
        read_samples("random:5", [INFO], 3)[2]["input"],  # type: ignore[call-overload]
        read_samples("random:7", [INFO], 1)[0]["input"],  # type: ignore[call-overload]
    )
    batch = np.arange(20, dtype=np.int8).reshape(5, 1, 4)
    np.save(tmp_path / "b.npy", batch)
    np.save(tmp_path / "single.npy", batch[0])
    samples = read_samples(str(tmp_path / "b.npy"), [INFO], 3)
    assert len(samples) == 3
    np.testing.assert_array_equal(samples[1]["input"], batch[1])  # type: ignore[call-overload]
    assert len(read_samples(str(tmp_path / "single.npy"), [INFO], 3)) == 1


def test_samples_of_different_numbers(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "s.npz", input=np.zeros((2, 1, 4), np.int8), other=np.zeros((3, 1, 2), np.int8)
    )
    with pytest.raises(InputError, match="2, 3"):
        read_samples(str(tmp_path / "s.npz"), TWO, 8)
