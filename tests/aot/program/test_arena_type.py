"""The arena's type: accesses have the types that its parts are declared with."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import htvm
from byoc_dory.errors import DefectError
from byoc_dory.memory.arena import written_over
from htvm.aot.entry import model_sources
from htvm.aot.program import Program
from htvm.tools.cli.arguments import open_model
from tests.aot import tiny


@pytest.fixture(scope="module")
def module() -> htvm.Module:
    """A network with buffers of int8 and uint32, some written over others."""
    return htvm.build(htvm.zoo.digits(), "cortex_m4")


def _declared(program: Program) -> dict[str, tuple[str, str, int]]:
    """Return type, member and index of each buffer as the entry function declares it."""
    text = model_sources(program)[f"{program.name}.c"]
    found = re.findall(r"(\w+) \*const (\w+) = &arena->(\w+)\[(\d+)\];", text)
    return {name: (kind, member, int(index)) for kind, name, member, index in found}


def test_every_buffer_is_a_part_of_the_array_of_its_type(module: htvm.Module) -> None:
    program = module.compiled.program
    header = model_sources(program)["digits.h"]
    members = re.findall(r"^ +(?:HTVM_ALIGNED\(16\) )?(\w+) (\w+)\[(\d+)\];", header, re.MULTILINE)
    sizes = {"int8_t": 1, "uint32_t": 4}
    assert {kind for kind, _, _ in members} == {*sizes}
    assert {sizes[kind] * int(count) for kind, _, count in members} == {program.plan.peak}
    types = {member: kind for kind, member, _ in members}
    declared = _declared(program)
    assert {*declared} == {use.name for use in program.buffers}
    for name, (kind, member, index) in declared.items():
        assert types[member] == kind
        assert index * sizes[kind] == program.plan.offset(name)


def test_kernels_access_buffers_as_they_are_declared(module: htvm.Module) -> None:
    program = module.compiled.program
    texts = model_sources(program)
    declared = _declared(program)
    for step in program.steps:
        prototype = re.search(rf"\b{step.function}\(([^)]*)\);", texts["digits_kernels.h"])
        assert prototype is not None
        for operand, parameter in zip(step.args, prototype[1].split(","), strict=False):
            if operand.kind == "buffer":
                kind = parameter.replace("const ", "").split()[0]
                assert declared[operand.name][0] == kind, step.function


def test_buffers_written_over_others_are_said(module: htvm.Module) -> None:
    program = module.compiled.program
    over = written_over(program.plan, program.buffers)
    text = model_sources(program)["digits.c"]
    assert over and text.count("written over") == len(over)
    for new, old in over.items():
        assert re.search(rf"\b{new} = .*, written over {old} \*/", text)


def test_two_wide_types_in_one_buffer_are_a_defect() -> None:
    program = tiny.program()
    model_sources(program)
    copies = tuple(
        p.replace("const int8_t *in0, int8_t *out", "const float *in0, int32_t *out")
        for p in program.prototypes
    )
    with pytest.raises(DefectError, match="accessed as float and as int32_t"):
        model_sources(replace(program, prototypes=copies))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_optimizers_that_trust_types_compute_the_same(
    compiler: str, module: htvm.Module, tmp_path: Path
) -> None:
    """One program over all files, in which every pointer can be traced to the arena."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    package = module.export(tmp_path / "package", kind="cmake")
    sources = [*(package / "src").glob("*.c"), *(package / "example").glob("*.c")]
    flags = ["-std=c11", "-O3", "-fstrict-aliasing", "-Wstrict-aliasing", "-Wall", "-Werror"]
    flags += ["-flto"] * (compiler == "gcc" or shutil.which("ld.lld") is not None)
    flags += ["-fuse-ld=lld"] * (compiler == "clang" and "-flto" in flags)
    folders = [f"-I{package / name}" for name in ("include", "src", "example")]
    out = tmp_path / "check"
    line = [compiler, *flags, *folders, *map(str, sources), "-o", str(out)]
    subprocess.run(line, check=True, timeout=300)
    done = subprocess.run([str(out)], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("PASS"), done.stdout


def test_paddings_go_backwards_only_where_their_output_lies_over_the_input() -> None:
    """The last row comes first where rows would be lost otherwise, and the comment says why."""
    seen = set()
    for network in ("digits", "resnet8"):
        program = htvm.build(open_model(f"zoo:{network}"), "cortex_m4").compiled.program
        new = written_over(program.plan, program.buffers)
        over = {program.steps[use.first].function for use in program.buffers if use.name in new}
        for name, text in re.findall(
            r"/\*\n((?:(?!\*/).)*?)\*/\nvoid (\w+)\(", program.cpu_source, re.DOTALL
        ):
            if "borders filled" in name:
                said = "the last one first: the output may lie over the input" in name
                assert said == (text in over), text
                seen.add(said)
    assert seen == {True, False}
