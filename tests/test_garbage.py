"""Files that users name and that are something else: refused by a typed error, all of them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from htvm.arrays import read_arrays
from htvm.errors import DefectError, ExportError, HtvmError, InputError
from htvm.quantization.samples import checked_labels, stacked_samples
from htvm.tiling_file import read_tiling
from htvm.tools.cli.arguments import read_inputs
from htvm.tools.sweeping.store import SCHEMA, Store
from htvm.tools.verification.verify import bind_golden
from tests.frontend.onnxfile import model_of, requant, saved

INFO = htvm.TensorInfo("x", (1, 4), "int8")


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def zipped(name: str, content: bytes, kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def npy(header: str) -> bytes:
    text = header.encode() + b" " * (117 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def damaged(kind: int) -> bytes:
    """An archive of this kind of compression with other bytes where the compressed ones are."""
    data = bytearray(zipped("x.npy", np.random.default_rng(1).bytes(400), kind))
    data[50:300] = b"\xff" * 250
    return bytes(data)


CONTENTS = {
    "empty": b"",
    "text": b"hello\n",
    "bytes": bytes(range(256)),
    "pickled": b"\x80\x04\x95\x10\x00",
    "npz cut off": npz(x=np.arange(100))[:-30],
    "npz of objects": npz(x=np.array([None, {}], object)),
    "npz of text": zipped("x.npy", b"hello"),
    "npz with another file": zipped("x", b"hello"),
    "npz that is empty": zipped("x.npy", b"")[:22],
    "npz of words": npz(x=np.array(["a", "b"])),
    "npz of records": npz(x=np.zeros(2, [("a", "i4"), ("b", "f4")])),
    "npz of dates": npz(x=np.array(["2020-01-01"], "datetime64[D]")),
    "npz of complex": npz(x=np.zeros((1, 4), complex)),
    "npz of another name": npz(strange=np.zeros((7, 3), np.int8)),
    "npz of no array": npz(),
    "npz of a scalar": npz(x=np.int8(3)),
    **{f"npz damaged {kind}": damaged(kind) for kind in (8, 12, 14)},
    "npy of 2**70": npy(f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({2**70},)}}"),
    "npy of -1": npy("{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}"),
    "npy of code": npy("{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}"),
    "npy of no header": npy("{"),
    "npy of nested brackets": npy("(" * 110),
    "null": b"null",
    "number": b"1e999",
    "digits": b"1" * 5000,
    "list": b"[1, 2]",
    "object": b"{}",
    "nested": b"[" * 100_000,
    "nested objects": b'{"a":' * 100_000,
    "surrogate": b'"\\ud800"',
    "bad utf-8": b'{"format": "\xff"}',
    "utf-16": '{"kind": "x"}'.encode("utf-16"),
    **{
        f"{key} {value!r:.20}": json.dumps({key: value}).encode()
        for key in ("kind", "format", "schema", "objective")
        for value in (None, [], {}, 3, "htvm tiling 1", "report", "project", "\ud800", "\x1b[31m")
    },
}  # fmt: skip


def loading(suffix: str) -> Callable[[Path], object]:
    def load(path: Path) -> object:
        return htvm.load(path.rename(path.with_suffix(suffix)))

    return load


def opening(path: Path) -> object:
    folder = path.parent / "export"
    folder.mkdir()
    path.rename(folder / "htvm.json")
    return htvm.open(folder)


READERS: dict[str, Callable[[Path], object]] = {
    "arrays": lambda path: read_arrays(path, "give arrays"),
    "inputs": lambda path: read_inputs(str(path), [INFO]),
    "golden": lambda path: bind_golden([INFO], path),
    "labels": lambda path: checked_labels(path, 2, [INFO]),
    "samples": lambda path: stacked_samples(path, [INFO]),
    "report": htvm.report.load,
    "exploration": htvm.report.load_exploration,
    "tiling": read_tiling,
    "export": opening,
    ".tflite": loading(".tflite"),
    ".onnx": loading(".onnx"),
}


@pytest.mark.parametrize("content", list(CONTENTS))
@pytest.mark.parametrize("reader", list(READERS))
def test_no_content_ends_in_an_untyped_error(reader: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENTS[content])
    try:
        READERS[reader](path)
    except HtvmError as error:
        assert not isinstance(error, DefectError)


NAMES = {
    "missing": "absent",
    "folder": ".",
    "null": "a\0b",
    "long": "x" * 5000,
    "surrogate": "a\udcffb",
    "lone surrogate": "a\ud800b",
    "empty": "",
}


@pytest.mark.parametrize("name", list(NAMES))
@pytest.mark.parametrize("reader", [each for each in READERS if not each.startswith(".")][:-1])
def test_no_name_ends_in_an_untyped_error(
    reader: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HtvmError) as caught:
        READERS[reader](Path(NAMES[name]))
    assert not isinstance(caught.value, DefectError)


@pytest.mark.parametrize("name", list(NAMES))
@pytest.mark.parametrize("call", [htvm.load, htvm.open, htvm.build, htvm.report.load])
def test_no_name_of_a_model_ends_in_an_untyped_error(
    call: Callable[[str], object], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HtvmError) as caught:
        call(NAMES[name])
    assert not isinstance(caught.value, DefectError)


def test_arrays_that_expand_are_refused_before_they_do(tmp_path: Path) -> None:
    path = tmp_path / "zeros.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("x.npy", "w") as entry:
            for _ in range(257):
                entry.write(bytes(2**20))
    with pytest.raises(InputError, match="its arrays take 269,484,032 bytes"):
        read_arrays(path, "give arrays")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("content", [each for each in CONTENTS if each != "empty"])
def test_the_results_of_an_unfinished_sweep(content: str, after: bool, tmp_path: Path) -> None:
    head = json.dumps({"htvm_sweep": SCHEMA, "digest": "d"}).encode() + b"\n" if after else b""
    (tmp_path / "a.csv.part").write_bytes(head + CONTENTS[content] + b"\n")
    with pytest.raises(ExportError, match="another sweep"):
        Store(tmp_path / "a.csv", "d", ("pes",))


@pytest.mark.parametrize("content", [each for each in CONTENTS if each.startswith("np")])
def test_what_lies_beside_a_network_does_not_keep_it_from_loading(
    content: str, tmp_path: Path
) -> None:
    (tmp_path / "inputs.npz").write_bytes(CONTENTS[content])
    nodes = [requant("x", "y", constants := {})]
    path = saved(model_of(nodes, {"x": (1, 4)}, constants=constants), tmp_path)
    assert htvm.load(path, input_types={"x": "int8"}).inputs == (INFO,)
