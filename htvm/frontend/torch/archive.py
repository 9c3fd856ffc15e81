"""Reading ``.pt2`` files, as ``torch.export.save`` writes them, without torch.

A file is a zip archive of uncompressed entries: the graph as JSON, tensors as the bytes of their
elements, and the example inputs as a pickle.  The pickle is never opened, so nothing of a file is
executed.  (``torch.export.load`` falls back to unpickling.)
"""

from __future__ import annotations

import io
import json
import math
import zipfile

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.limits import Budget, Limits
from htvm.frontend.torch.program import TorchProgram, TorchTensor
from htvm.frontend.torch.serialized import TYPES, Fields, program_of

MAJOR = 8
"""Major version of the schema that is read."""

_WRITE = "write it again with torch.export.save(program, path) of torch 2.9 to 2.13"
_MODEL = "models/model.json"
_CONFIGS = {
    "data/weights/": "model_weights_config.json",
    "data/constants/": "model_constants_config.json",
}
_OTHERS = {
    "serialized_exported_program.json": "a program as torch before 2.8 saved it",
    "constants.pkl": "TorchScript, whose code is not read",
    "data.pkl": "pickled tensors or modules, which are not read",
}


def read_archive(data: bytes, source: str, limits: Limits | None = None) -> TorchProgram:
    """Read and check a program.

    Args:
        data: the content of a file.
        source: its name, for messages.
        limits: what reading it may take; by default those of `Limits`.

    Raises:
        ModelError: it is no such archive, truncated, or contradicts itself.
        UnsupportedError: it is of another version, has dynamic shapes, pickled tensors, or takes
            more than the limits.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, EOFError) as error:
        cut = data[:4] == b"PK\x03\x04"
        raise ModelError(
            "an archive that ends too early" if cut else "not a program of torch: no archive",
            where=source,
            hint="fetch it again" if cut else _WRITE,
        ) from error
    root = names[0].partition("/")[0] if names else ""
    entries = _Entries(archive, root, source)
    if f"{root}/{_MODEL}" not in names:
        ends = {name.rpartition("/")[2] for name in names}
        found = next((text for end, text in _OTHERS.items() if end in ends), "another archive")
        raise ModelError(f"not a program of torch: {found}", where=source, hint=_WRITE)
    budget = Budget(limits or Limits(), source, {"decoded_bytes": 4 * len(data)})
    model = entries.fields(_MODEL, budget)
    version = model.fields("schema_version")
    if version.integer("major") != MAJOR:
        raise UnsupportedError(
            f"a program of version {version.integer('major')} of the schema, {MAJOR} is read",
            where=source,
            hint=_WRITE,
        )
    if entries.text("byteorder", "little") != "little":
        raise UnsupportedError("tensors with the first byte high", where=source, hint=_WRITE)
    stored = {
        name: _Stored(f"{folder}{config.text('path_name')}", config)
        for folder, file in _CONFIGS.items()
        if f"{root}/{folder}{file}" in names
        for name, config in entries.fields(folder + file, budget).fields("config").items()
    }
    tensors: dict[str, Array] = {}

    def constant(name: str, declared: TorchTensor) -> Array:
        if name not in tensors:
            if name not in stored:
                raise ModelError(
                    f"parameter or buffer '{name}' is not in the file", where=source, hint=_WRITE
                )
            tensors[name] = stored[name].read(name, entries, budget)
        found = tensors[name]
        if found.shape != declared.shape or found.dtype.name != declared.dtype:
            raise ModelError(
                f"'{name}' is {found.dtype}{list(found.shape)}, and the graph reads "
                f"{declared.dtype}{list(declared.shape)}",
                where=source,
                hint="the file contradicts itself; save it again",
            )
        return found

    program = program_of(model, source, constant, budget)
    budget.grant(array.size for array in program.constants.values())
    return program


class _Entries:
    """The entries of an archive below its root."""

    def __init__(self, archive: zipfile.ZipFile, root: str, source: str) -> None:
        self._archive, self._root, self.source = archive, root, source

    def read(self, path: str) -> bytes:
        """Return an entry's bytes.

        Raises:
            ModelError: there is none, or it is damaged.
            UnsupportedError: it is compressed or encrypted, which torch never writes.
        """
        where = f"'{path}' in {self.source}"
        try:
            info = self._archive.getinfo(f"{self._root}/{path}")
        except KeyError as error:
            raise ModelError("an entry is missing", where=where, hint=_WRITE) from error
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise UnsupportedError("a compressed entry", where=where, hint=_WRITE)
        try:
            return self._archive.read(info)
        except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError) as error:
            raise ModelError("a damaged entry", where=where, hint="fetch the file again") from error

    def text(self, path: str, default: str) -> str:
        """Return an entry that is a short text, or the default if it is missing."""
        if f"{self._root}/{path}" not in self._archive.namelist():
            return default
        return self.read(path).decode("utf-8", "replace").strip()

    def fields(self, path: str, budget: Budget) -> Fields:
        """Return an entry of JSON, which must be an object.

        Raises:
            ModelError: it is none.
        """
        data, where = self.read(path), f"'{path}' in {self.source}"
        budget.spend("decoded_bytes", len(data), where)
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ModelError("damaged JSON", where=where, hint="fetch the file again") from error
        return Fields(value, where)


class _Stored:
    """A tensor in the archive: the entry with its bytes, and how they are its elements."""

    def __init__(self, path: str, config: Fields) -> None:
        self._path, self._config = path, config

    def read(self, name: str, entries: _Entries, budget: Budget) -> Array:
        """Return the elements.

        Raises:
            ModelError: they lie outside of the entry.
            UnsupportedError: they are pickled, or of a type that numpy lacks.
        """
        where = f"'{name}' in {entries.source}"
        if self._config.get("use_pickle"):
            raise UnsupportedError(
                "a pickled tensor, which is not read: opening it could run code",
                where=where,
                hint="save a program whose parameters are plain dense tensors",
            )
        meta = self._config.fields("tensor_meta")
        number = meta.integer("dtype")
        if number not in TYPES:
            raise UnsupportedError(f"a tensor of type number {number}", where=where)
        dtype = np.dtype(TYPES[number]).newbyteorder("<")
        sizes, strides = meta.sizes("sizes"), meta.sizes("strides")
        first, raw = meta.size("storage_offset"), entries.read(self._path)
        if len(sizes) != len(strides) or min((*sizes, *strides, first), default=0) < 0:
            raise ModelError(f"sizes {list(sizes)} with strides {list(strides)}", where=where)
        steps = zip(sizes, strides, strict=True)
        last = first + sum((size - 1) * stride for size, stride in steps)
        empty = 0 in sizes
        if not empty and (last + 1) * dtype.itemsize > len(raw):
            raise ModelError(
                f"elements of a tensor up to byte {(last + 1) * dtype.itemsize:,} of {len(raw):,}",
                where=where,
                hint="the file is truncated or contradicts itself; fetch it again",
            )
        budget.spend("decoded_bytes", math.prod(sizes) * dtype.itemsize, where)
        if empty:
            return np.zeros(sizes, dtype)
        flat = np.frombuffer(raw, dtype, count=len(raw) // dtype.itemsize)[first:]
        byte_strides = [stride * dtype.itemsize for stride in strides]
        view = np.lib.stride_tricks.as_strided(flat, sizes, byte_strides, writeable=False)
        return np.array(view, order="C")
