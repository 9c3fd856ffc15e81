"""The generated C of a small program: strict compilers, error codes, two models in one program."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.errors import UnsupportedError
from htvm.aot.entry import model_sources
from htvm.aot.literals import c_array, c_string, c_type
from htvm.aot.program import Program
from htvm.firmware.isa import rv32_flags
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from tests.aot import tiny
from tests.tools import tool

STRICT = ("-Wall", "-Wextra", "-Werror")

# A platform of the smallest kind: no devices, traces counted.
HAL = """
#ifndef HTVM_HAL_PLATFORM_H
#define HTVM_HAL_PLATFORM_H
#include <stdint.h>
extern uint32_t traces[64], trace_count;
static inline void htvm_hal_trace(uint32_t event) { traces[trace_count++ % 64] = event; }
#endif
"""


def _write(folder: Path, *programs: Program) -> list[Path]:
    (folder / "htvm_hal_platform.h").write_text(HAL)
    (folder / "hal.c").write_text("#include <stdint.h>\nuint32_t traces[64], trace_count;\n")
    for program in programs:
        for name, text in model_sources(program).items():
            (folder / name).write_text(text)
    return sorted(folder.glob("*.c"))


def _library(folder: Path, *programs: Program, compiler: Compiler | None = None) -> ctypes.CDLL:
    sources = _write(folder, *programs)
    includes = [folder, runtime_c() / "include"]
    compiler = compiler or Compiler.zig()
    out = compiler.compile_host(sources, folder / "lib.so", includes, STRICT, shared=True)
    return ctypes.CDLL(str(out))


def _aligned(data: np.ndarray) -> np.ndarray:
    """A copy at a 16-byte aligned address."""
    raw = np.zeros(data.nbytes + 16, np.uint8)
    start = -raw.ctypes.data % 16
    view = raw[start : start + data.nbytes].view(data.dtype).reshape(data.shape)
    view[...] = data
    return view


def _buffers(seed: int = 0) -> list[np.ndarray]:
    x = np.random.default_rng(seed).integers(-128, 128, (1, 4, 8)).astype(np.int8)
    return [_aligned(x), _aligned(np.zeros(32, np.int8)), _aligned(np.zeros((1, 4, 8), np.int8))]


def _pointers(buffers: list[np.ndarray]) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(buffer.ctypes.data) for buffer in buffers]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Two copies of the tiny model in one program."""
    folder = tmp_path_factory.mktemp("two")
    return _library(folder, tiny.program("one"), tiny.program("two"))


def test_two_models_in_one_program_do_not_meet(library: ctypes.CDLL) -> None:
    for seed in range(4):
        for run in (library.one_run, library.two_run):
            buffers = _buffers(seed)
            assert run(*_pointers(buffers)) == 0
            for got, want in zip(buffers[1:], tiny.reference(buffers[0]), strict=True):
                np.testing.assert_array_equal(got, want)


def test_each_step_is_marked(library: ctypes.CDLL) -> None:
    count = ctypes.c_uint32.in_dll(library, "trace_count")
    count.value = 0
    library.one_run(*_pointers(_buffers()))
    traces = (ctypes.c_uint32 * 64).in_dll(library, "traces")
    assert list(traces)[: count.value] == [0, 1, 2, 3, 4, 5, 6, 7]


def test_null_and_misaligned_pointers_are_refused(library: ctypes.CDLL) -> None:
    good = _pointers(_buffers())
    arena = _aligned(np.zeros(256, np.uint8)).ctypes.data
    for index in range(3):
        bad = [None if i == index else pointer for i, pointer in enumerate(good)]
        assert library.one_run(*bad) == -1
        odd = [ctypes.c_void_p((p.value or 0) + 2 * (i == index)) for i, p in enumerate(good)]
        assert library.one_run(*odd) == -2
    assert library.one_run_in(None, *good) == -1
    assert library.one_run_in(ctypes.c_void_p(arena + 8), *good) == -2


def test_an_arena_of_the_caller(library: ctypes.CDLL) -> None:
    """The run stays inside the arena's stated size, and needs no particular contents."""
    size = tiny.program().plan.peak
    arena = _aligned(np.full(size + 32, 0xA5, np.uint8))
    buffers = _buffers(9)
    assert library.one_run_in(ctypes.c_void_p(arena.ctypes.data), *_pointers(buffers)) == 0
    np.testing.assert_array_equal(buffers[2], tiny.reference(buffers[0])[1])
    assert (arena[size:] == 0xA5).all() and (arena[:size] != 0xA5).any()


def test_the_first_nonzero_code_is_returned(tmp_path: Path) -> None:
    library = _library(tmp_path, tiny.program(fail_with=77))
    buffers = _buffers()
    assert library.tiny_run(*_pointers(buffers)) == 77
    assert not buffers[2].any(), "steps after the failure were run"


@pytest.mark.parametrize("host", ["gcc", "clang"])
def test_strict_compilers_have_nothing_to_say(host: str, tmp_path: Path) -> None:
    tool(host)
    _library(tmp_path, tiny.program(), compiler=Compiler.zig(host=host))


def test_the_cross_compiler_has_nothing_to_say(tmp_path: Path) -> None:
    for source in _write(tmp_path, tiny.program()):
        includes = [tmp_path, runtime_c() / "include"]
        made, strict = tmp_path / "out.o", (*STRICT, "-c")
        Compiler.zig().compile_cross([source], made, includes, rv32_flags(), None, strict)


def test_cplusplus_can_call_the_entry_function(tmp_path: Path) -> None:
    """The header's names are C's there, too, and nothing in it is C alone."""
    sources = _write(tmp_path, tiny.program())
    caller = tmp_path / "caller.cpp"
    caller.write_text(
        '#include "tiny.h"\n'
        'extern "C" int32_t call(const int8_t *in, int8_t *first, int8_t *second)\n'
        "{\n    return tiny_run(in, first, second);\n}\n"
    )
    compiler, strict = Compiler.zig(), (*STRICT, "-std=c++11", "-c", "-fPIC")
    made = compiler.compile_host([caller], tmp_path / "caller.o", [tmp_path], strict)
    includes = [tmp_path, runtime_c() / "include"]
    out = compiler.compile_host([*sources, made], tmp_path / "lib.so", includes, shared=True)
    buffers = _buffers()
    assert ctypes.CDLL(str(out)).call(*_pointers(buffers)) == 0
    np.testing.assert_array_equal(buffers[2], tiny.reference(buffers[0])[1])


def test_the_same_program_gives_the_same_text() -> None:
    assert model_sources(tiny.program()) == model_sources(tiny.program())


def test_constants_are_declared_once() -> None:
    texts = model_sources(tiny.program())
    for constant in tiny.program().constants:
        declared = re.compile(rf"\bextern\b[^;]*\b{constant.name}\b")
        found = {name: len(declared.findall(text)) for name, text in texts.items()}
        assert {name for name, count in found.items() if count} == {"tiny_weights.h"}
        assert found["tiny_weights.h"] == 1


def test_numbers_survive_printing(tmp_path: Path) -> None:
    arrays = {
        "a": np.array([-128, 127, 0], np.int8),
        "b": np.array([[255, 0], [1, 2]], np.uint8),
        "c": np.array([-(2**31), 2**31 - 1], np.int32),
        "d": np.array([2**32 - 1], np.uint32),
        "e": np.array([-(2**63), 2**63 - 1], np.int64),
        "f": np.array([0.1, -1e-40, 3.0e38], np.float32),
        "g": np.array([-(2**15), 2**15 - 1], np.int16),
    }
    lines = ["#include <stdint.h>"]
    for name, array in arrays.items():
        kind = c_type(array.dtype.name)
        lines.append(f"extern const {kind} {name}[]; const {kind} {name}[] = {{")
        lines += [c_array(array), "};"]
    source = tmp_path / "numbers.c"
    source.write_text("\n".join(lines) + "\n")
    out = Compiler.zig().compile_host([source], tmp_path / "n.so", flags=STRICT, shared=True)
    library = ctypes.CDLL(str(out))
    for name, array in arrays.items():
        raw = (ctypes.c_uint8 * array.nbytes).in_dll(library, name)
        np.testing.assert_array_equal(np.frombuffer(bytes(raw), array.dtype), array.ravel())


def test_what_c_cannot_hold_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="float16"):
        c_type("float16")
    with pytest.raises(UnsupportedError, match="empty"):
        c_array(np.zeros(0, np.int8))


def test_strings_have_the_bytes_of_arrays(tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(-128, 128, 10_000).astype(np.int8)
    data[:256] = np.arange(-128, 128)
    source = f"""
#include <stdint.h>
const int8_t numbers[{data.size}] = {{ {c_array(data)} }};
const int8_t strings[{data.size}] = {c_string(data)};
"""
    (tmp_path / "arrays.c").write_text(source)
    library = ctypes.CDLL(
        str(
            Compiler.zig().compile_host(
                [tmp_path / "arrays.c"], tmp_path / "lib.so", (), ("-Werror",), shared=True
            )
        )
    )
    for name in ("numbers", "strings"):
        found = (ctypes.c_int8 * data.size).in_dll(library, name)
        np.testing.assert_array_equal(np.frombuffer(found, np.int8), data)
