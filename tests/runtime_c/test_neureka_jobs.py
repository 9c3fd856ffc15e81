"""Random jobs of N-EUREKA through driver and device model, against their definition in numpy."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.soc.header import render
from byoc_dory.soc.siracusa.neureka import NEUREKA
from byoc_dory.soc.siracusa.neureka_core import Mode
from byoc_dory.soc.siracusa.neureka_jobs import job_cycles
from byoc_dory.soc.siracusa.neureka_tiles import pack_weights
from htvm.firmware.host import include_folders, model_sources, sanitizing
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from tests.reference import neureka as reference
from tests.runtime_c.neureka_jobs import Placed, place, planned, random_job
from tests.runtime_c.siracusa import DRIVERS, SOC

STRICT = ("-g", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wshadow", "-Wconversion")
SLOW = 550
EVERYDAY = 60


def program(folder: Path, sanitize: bool) -> Path:
    """The program that runs jobs; sanitized with gcc, which also checks memory accesses."""
    name = "gcc" if sanitize and shutil.which("gcc") is not None else None
    compiler = Compiler.zig(host=name)
    compiler = sanitizing(compiler) if sanitize else compiler
    (folder / "htvm_soc.h").write_text(render(SOC))
    tests = runtime_c() / "tests"
    _, *includes = include_folders(SOC)
    return compiler.compile_host(
        [
            tests / "soc" / "siracusa" / "run_jobs.c",
            *DRIVERS,
            *model_sources(SOC),
        ],
        folder / "run_jobs",
        [folder, tests / "driver", tests, *includes],
        STRICT,
    )


def fields(placed: Placed) -> list[int]:
    """The driver's struct, in the order in which the program reads it."""
    job, at = placed.job, placed.places
    rows, columns, outputs = job.shape
    per_channel = not isinstance(job.shift, int)
    flags = (
        (job.scale is not None) << 4
        | job.prefetch << 10
        | job.wide_scale << 13
        | (job.begun is not None) << 14
        | job.signed_output << 23
        | per_channel << 24
        | (job.bias is not None) << 25
        | (job.x.dtype == np.int8) << 26
    )
    places = [placed.weights_at, at.x, at.output, at.scale, at.shift, at.bias]
    strides = [at.x_row, at.x_pixel, at.output_row, at.output_pixel]
    mask = sum(1 << tap for tap in job.mask)
    sizes = [job.offset, rows, columns, job.x.shape[2], outputs, mask]
    mode = [reference.CODE[job.kind], job.bits, 0 if per_channel else int(job.shift)]  # type: ignore[arg-type]
    values = [flags, *places, *strides, *sizes, *mode, *job.padding, job.padding_value]
    return [int(value) & 0xFFFFFFFF for value in values]


def placed_job(seed: int) -> Placed:
    rng = np.random.default_rng(seed)
    while True:
        job = random_job(rng)
        packed = pack_weights(job.weights, Mode(reference.CODE[job.kind]), NEUREKA, bits=job.bits)
        assert packed.offset == job.offset
        found = place(rng, job, packed.data.tobytes())
        if found is not None:
            return found


def written(placed: Placed) -> bytes:
    """A job as the program reads it."""
    values = fields(placed)
    outside = placed.job.weight_memory
    return b"".join((
        np.array([*values, placed.l1.size], np.uint32).tobytes(),
        placed.l1.tobytes(),
        np.array([placed.weights_at * outside, len(placed.weights)], np.uint32).tobytes(),
        placed.weights if outside else b"",
    ))  # fmt: skip


def check(path: Path, seeds: range) -> None:
    jobs = [placed_job(seed) for seed in seeds]
    for seed, placed in zip(seeds, jobs, strict=True):
        assert placed.weights == reference.stored_weights(placed.job), seed
    stdin = b"".join(map(written, jobs))
    done = subprocess.run([str(path)], input=stdin, capture_output=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr.decode()
    at = 0
    for seed, placed in zip(seeds, jobs, strict=True):
        job = placed.job
        registers = struct.unpack_from("24I", done.stdout, at)
        assert list(registers) == reference.registers(job, placed.places), seed
        (cycles,) = struct.unpack_from("Q", done.stdout, at + 96)
        assert cycles == reference.cycles(job) == job_cycles(planned(job), NEUREKA), seed
        at += 104
        l1 = np.frombuffer(done.stdout, np.uint8, placed.l1.size, at)
        at += placed.l1.size
        assert np.array_equal(l1, placed.expected), f"{seed}: {job.kind} {job.shape}"
    assert at == len(done.stdout)


@pytest.mark.parametrize("sanitize", [False, True])
def test_random_jobs(tmp_path: Path, sanitize: bool) -> None:
    check(program(tmp_path, sanitize), range(EVERYDAY))


@pytest.mark.slow
@pytest.mark.parametrize("sanitize", [False, True])
def test_more_random_jobs(tmp_path: Path, sanitize: bool) -> None:
    path = program(tmp_path, sanitize)
    for start in range(EVERYDAY, EVERYDAY + SLOW, 50):
        check(path, range(start, start + 50))


def test_the_jobs_have_everything() -> None:
    """What random jobs must have, or the tests above would not see it go wrong."""
    jobs = [placed_job(seed).job for seed in range(EVERYDAY)]
    assert {job.bits for job in jobs} == set(range(2, 9))
    assert {job.kind for job in jobs} == set(reference.CODE)
    assert {job.kind for job in jobs if job.mask} == {"3x3", "depthwise"}
    assert {job.kind for job in jobs if job.begun is not None} == set(reference.CODE)
    assert {job.kind for job in jobs if not isinstance(job.shift, int)} == set(reference.CODE)
    assert any(any(job.padding) and job.padding_value for job in jobs)
    assert any(job.scale is not None and job.bias is None for job in jobs)
    scaled = [job for job in jobs if job.scale is not None]
    # Neither all clipped nor all equal: most outputs have many values.
    assert sum(len(np.unique(reference.output(job))) > 20 for job in scaled) > len(scaled) // 2
