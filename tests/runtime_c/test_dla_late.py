"""The late assembler in C: the same words as in Python; damaged files; small arenas."""

from __future__ import annotations

import ctypes
import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from byoc_dory.errors import InputError, ModelError, TilingError
from byoc_dory.soc.dla.assemble import assemble
from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.late import LateAssembler, arena_bytes
from byoc_dory.soc.dla.memory import plan
from byoc_dory.soc.dla.region_file import RegionFile, lower
from byoc_dory.soc.dla.tiles import memory_need, smallest
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from tests.byoc_dory.dla_draws import draw_design, draw_region, library
from tests.byoc_dory.region_reading import read_region
from tests.runtime_c.test_c_units import STRICT
from tests.tools import tool

ROOMY = Design(4, 8, 1 << 20)


def drawn(seed: int) -> tuple[RegionFile, bytes, bytes]:
    """A random region as a file, its JSON, and its weights."""
    rng = np.random.default_rng([seed, 77])
    file, weights = lower(draw_region(rng, int(rng.integers(1, 7))))
    return file, msgspec.json.encode(file), weights


def check_same(
    assembler: LateAssembler, file: RegionFile, text: bytes, weights: bytes, design: Design
) -> bool:
    """Compare plans and streams of a design; returns whether it is feasible."""
    try:
        memory = plan(file, design)
    except TilingError as error:
        with pytest.raises(TilingError) as caught:
            assembler.assemble(text, design, weights)
        assert caught.value.limit == design.sram
        assert f"needs {caught.value.smallest} B of SRAM" in str(error)
        return False
    wanted = assemble(file, design, memory)
    found = assembler.assemble(text, design, weights)
    assert found.layers == memory.layers, design
    assert found.peak == memory.peak, design
    assert found.stream.words.tobytes() == wanted.words.tobytes(), design
    assert found.stream == wanted, design
    assert found.arena == arena_bytes(file, wanted)
    return True


def check_random(seed: int, designs: int) -> int:
    """Compare one region on random designs, with little SRAM and much."""
    rng = np.random.default_rng([seed, 78])
    file, text, weights = drawn(seed)
    assembler = LateAssembler(library())
    feasible = 0
    for _ in range(designs):
        design = draw_design(rng, 1 << 20)
        least = max(
            memory_need(file, layer, design, smallest(file, layer, design)).total
            for layer in file.layers
        )
        sram = int(rng.choice([least - 1, least, least + 5, 2 * least, 5 * least, 1 << 20]))
        feasible += check_same(assembler, file, text, weights, replace(design, sram=max(1, sram)))
    return feasible


def test_random_regions_give_the_same_stream() -> None:
    assert sum(check_random(seed, 10) for seed in range(60)) > 400


@pytest.mark.slow
def test_more_random_regions_give_the_same_stream() -> None:
    assert sum(check_random(seed, 20) for seed in range(100, 400)) > 4000


# ------------------------------------------------------------------------------ arenas


def test_small_arenas_say_what_they_need_and_stay_inside() -> None:
    """Every size below the right one: a code, the size, and not a byte beyond the arena."""
    file, text, weights = drawn(3)
    wanted = assemble(file, ROOMY, plan(file, ROOMY))
    enough = arena_bytes(file, wanted)
    tables = enough - 4 * len(wanted.words)
    with pytest.raises(InputError, match=f"needs {enough} B"):
        LateAssembler(library(), enough - 1).assemble(text, ROOMY, weights)
    assert LateAssembler(library(), enough).assemble(text, ROOMY, weights).arena == enough
    for size in (*range(0, tables + 40, 4), *range(tables, enough, 52)):
        assembler = LateAssembler(library(), size)
        place = (ctypes.c_uint8 * (size + 64)).from_buffer(bytearray(b"\xa5" * (size + 64)))
        at = ctypes.addressof(place) + -ctypes.addressof(place) % 8
        assembler._arena = (ctypes.c_uint8 * 0).from_address(at), size
        with pytest.raises(InputError) as caught:
            assembler.assemble(text, ROOMY, weights)
        said = f"needs {enough} B" if size >= tables else f"needs at least {tables} B"
        assert said in str(caught.value)
        beyond = bytes(place)[at - ctypes.addressof(place) + size :]
        assert set(beyond) <= {0xA5}


# ------------------------------------------------------------------------------ damaged files


def refuse(text: bytes, says: str, weights: bytes | None = None) -> None:
    with pytest.raises(ModelError) as caught:
        LateAssembler(library()).assemble(text, ROOMY, weights)
    assert says in str(caught.value), text


def test_every_truncation_is_refused() -> None:
    _, text, _ = drawn(5)
    for length in range(len(text)):
        refuse(text[:length], f"ends too early, after {length} B")


def test_newer_schemas_other_formats_and_weights() -> None:
    file, text, weights = drawn(6)
    newer: dict[str, Any] = json.loads(text) | {"version": 2, "later": [None, True, 1.5e3, {}]}
    refuse(json.dumps(newer).encode(), "schema has version 2")
    refuse(json.dumps({**json.loads(text), "format": "other"}).encode(), "it is no region")
    refuse(b"[1]", "this is no JSON, at byte 0")
    refuse(b"{}", "this is no JSON")
    refuse(text + b"x", "this is no JSON")
    if weights:
        refuse(text, "another network", bytes([weights[0] ^ 1]) + weights[1:])
    refuse(text, f"there are not {file.weights_bytes} B of weights", weights + b"\0")
    LateAssembler(library()).assemble(json.dumps(json.loads(text), indent=3).encode(), ROOMY)


def test_fields_and_layers_that_are_wrong() -> None:
    text = next(text for file, text, _ in map(drawn, range(99)) if file.layers[0].op == "conv")
    for path, value, says in (
        (("layers", 0, "shift"), 32, "out of range"),
        (("layers", 0, "shift"), -1, "out of range"),
        (("layers", 0, "shift"), 1.5, "out of range"),
        (("layers", 0, "op"), "fft", "out of range"),
        (("layers", 0, "inputs"), [0, 0, 0], "out of range"),
        (("layers", 0, "inputs"), [99], "contradicts"),
        (("layers", 0, "output"), 0, "contradicts"),
        (("layers", 0, "pad"), [0, 0], "missing"),
        (("layers", 0, "clip"), [5, 4], "contradicts"),
        (("layers", 0, "clip"), [-129, 4], "out of range"),
        (("layers", 0, "kernel"), [0, 1], "contradicts"),
        (("layers", 0, "stride"), [0, 1], "contradicts"),
        (("layers", 0, "weights"), 8, "contradicts"),
        (("layers", 0, "weights"), 1 << 20, "contradicts"),
        (("layers", 0, "colour"), 1, "unknown"),
        (("tensors", 0, "rows"), 0, "out of range"),
        (("tensors", 0, "channels"), 1 << 31, "out of range"),
        (("tensors", 0, "kind"), "other", "out of range"),
        (("weights_bytes",), -1, "out of range"),
        (("later",), 1, "unknown"),
    ):
        found = json.loads(text)
        place = found
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        refuse(json.dumps(found).encode(), says)
    for key in ("tensors", "layers", "name", "weights_sha256"):
        found = json.loads(text)
        del found[key]
        refuse(json.dumps(found).encode(), "missing")


def test_random_damage_never_ends_in_anything_but_an_error() -> None:
    """Bytes changed at random: an error, or a region that Python's checks would take as well."""
    rng = np.random.default_rng(1)
    assembler = LateAssembler(library())
    _, text, _ = drawn(9)
    for _ in range(3000):
        damaged = bytearray(text)
        for _ in range(int(rng.integers(1, 4))):
            damaged[int(rng.integers(len(text)))] = int(rng.choice(list(b'0123456789[]{},:"-e\\ ')))
        try:
            assembler.assemble(bytes(damaged), ROOMY)
        except (ModelError, TilingError):
            continue
        read_region(bytes(damaged))


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000])
def test_hashes_are_those_of_a_known_implementation(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size).astype(np.uint8).tobytes()
    digest = ctypes.create_string_buffer(32)
    ctypes.CDLL(str(library())).dla_late_sha256(data, ctypes.c_size_t(size), digest)
    assert digest.raw == hashlib.sha256(data).digest()


def test_with_sanitizers(tmp_path: Path) -> None:
    """The same words from arenas that are exactly as large, without undefined behaviour."""
    cases = []
    for seed in range(500, 530):
        rng = np.random.default_rng(seed)
        file, text, weights = drawn(seed)
        design = draw_design(rng, 1 << 20)
        words = assemble(file, design, plan(file, design)).words
        numbers = [design.pes_in, design.pes_out, design.sram, design.dma_bytes, design.dma_setup,
                   design.depthwise, design.fused, design.rows, design.resident,
                   len(text), len(weights), len(words)]  # fmt: skip
        cases.append(np.array(numbers, "<u4").tobytes() + text + weights + words.tobytes())
    (tmp_path / "cases").write_bytes(b"".join(cases))
    folder = runtime_c() / "soc" / "dla"
    check = runtime_c() / "tests" / "soc" / "dla" / "late_check.c"
    tool("gcc")
    built = Compiler.zig(host="gcc").built(
        "late_check", [check, *sorted((folder / "late").glob("*.c"))], [folder, folder / "late"],
        flags=(*STRICT, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    )  # fmt: skip
    done = subprocess.run([built, tmp_path / "cases"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "30 cases\n"), done.stderr
