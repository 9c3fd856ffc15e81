"""TFLite Micro with its Ethos-U operator beside ours: flash, RAM, instructions of the host.

    python -m benchmarks.ethos_u_tflm SOURCES

SOURCES is as for ``python -m benchmarks.tflm``.  TFLite Micro is given what Vela's own program
makes of a file by its defaults, ours the file.  Both are compiled by the same GCC, for a Cortex-M55
with an Ethos-U55, and measured on QEMU with a driver that does nothing and reports success: Arm's
driver would be the same on both sides.  Outputs are those of further runs, with the model of the
device in the driver's place.  The table goes to ``docs/results/ethos_u_tflm.json``, and into
``docs/socs/ethos_u.md``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import numpy as np

import htvm
from benchmarks.boards import FILES
from benchmarks.tflm import firmware as interpreter
from benchmarks.tflm.cells import network_of
from benchmarks.tflm.compilers import Kit, kit_of
from benchmarks.tflm.run import APART, INVOKE, Network
from byoc_dory.soc.base import Soc
from byoc_dory.soc.registry import resolve
from htvm.aot.entry import model_sources, render, template_fields
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.firmware import arm
from htvm.firmware.build import RUN_MARK, build_qemu
from htvm.firmware.linked import Firmware
from htvm.firmware.paths import NO_DEVICES, soc_folder
from htvm.sim.qemu import run_qemu
from htvm.sim.runner import run
from htvm.tools.cli.app import exit_code

TARGET = "ethos_u55:macs=128"
_ROOT = Path(__file__).parents[1]
_PAGE = _ROOT / "docs" / "socs" / "ethos_u.md"
_BLOCK = re.compile(r"(<!-- python -m benchmarks.ethos_u_tflm -->\n).*?(\n<!-- end -->)", re.S)
_OURS, _THEIRS = "this project", "TFLite Micro"
_STACK = 16_384
_IDLE = """/* A driver that does nothing, to measure what is around it. */
#include "ethosu_driver.h"

struct ethosu_driver *ethosu_reserve_driver(void)
{
    return (struct ethosu_driver *)16;
}

void ethosu_release_driver(struct ethosu_driver *drv) { (void)drv; }

int ethosu_invoke_v3(struct ethosu_driver *drv, const void *custom_data_ptr,
                     const int custom_data_size, uint64_t *const base_addr,
                     const size_t *base_addr_size, const int num_base_addr, void *user_arg)
{
    (void)drv, (void)custom_data_ptr, (void)custom_data_size, (void)base_addr;
    (void)base_addr_size, (void)num_base_addr, (void)user_arg;
    return 0;
}
"""


@dataclass(frozen=True)
class Row:
    """A network on one side.

    Attributes:
        network: its name.
        by: the side.
        equal: whether every element of the output is TFLite Micro's of the file without an NPU.
        code: bytes of flash without what the NPU reads, and without the file around it.
        network_bytes: bytes of what it reads, on TFLite Micro's side the file that has it.
        ram: bytes of arena, variables and stack.
        instructions: of one inference, without the driver.
    """

    network: str
    by: str
    equal: bool
    code: int
    network_bytes: int
    ram: int
    instructions: int


def ours(network: Network, soc: Soc, kit: Kit, folder: Path) -> Row:
    """Measure this project's firmware of a network.

    Args:
        network: the network.
        soc: the core and its NPU, with QEMU's memories.
        kit: the compiler.
        folder: for the firmware.
    """
    options = BuildOptions(input="overwritten")  # As theirs, in the arena.
    compiled = Compiled(htvm.load(network.path), TARGET, options).finish()
    program = compiled.program
    given = np.asarray(network.given).reshape(tuple(program.inputs[0].shape))
    found = run(build_qemu(program, soc, kit.compiler), [given]).outputs[0]
    files = model_sources(program, strings=True)
    files["main.c"] = render("run_rv32.c.jinja", **template_fields(program), run_mark=RUN_MARK)
    sources = [_written(folder / name, text) for name, text in files.items()]
    sources = [path for path in sources if path.suffix == ".c"]
    arm.build_firmware([*sources, _idle(folder)], _bare(soc), folder, kit.compiler)
    firmware = Firmware.open(folder / "firmware.elf", soc, soc.host.stack)
    loaded = {"htvm_run_input_0": given.tobytes()}
    ran = run_qemu(firmware, loaded, {}, entry=f"{program.name}_run", kernels=[])
    memory = firmware.memory
    read = sum(
        constant.data.nbytes
        for code in compiled.regions.values()
        for kernel in code.kernels
        for constant in kernel.constants
    )
    return Row(
        network=network.name,
        by=_OURS,
        equal=bool(np.array_equal(np.ravel(found), np.ravel(network.wanted))),
        code=memory.flash - read,
        network_bytes=read,
        ram=memory.ram - memory.stack + ran.stack_used,
        instructions=ran.instructions,
    )


def theirs(
    sources: interpreter.Sources, network: Network, soc: Soc, kit: Kit, folder: Path, objects: Path
) -> Row:
    """Measure TFLite Micro's firmware of what Vela makes of a network; see `ours`.

    Args:
        sources: TFLite Micro's.
        network, soc, kit, folder: as for `ours`.
        objects: folder of object files that are kept.
    """
    subprocess.run(
        [sys.executable, "-m", "ethosu.vela", str(network.path), "--output-dir", str(folder),
         "--accelerator-config", "ethos-u55-128"],
        check=True, capture_output=True,
    )  # fmt: skip
    (compiled,) = folder.glob("*_vela.tflite")
    # As in Arm's header, these are functions of C.
    header = f'extern "C" {{\n#include "{soc_folder(soc) / "ethosu_driver.h"}"\n}}\n'
    _written(folder / "cxx" / "ethosu_driver.h", header)
    kit = replace(kit, cxx=(*kit.cxx, folder / "cxx"))

    def measured(libraries: Sequence[Path], emulated: bool) -> tuple[int, int, int, bytes]:
        place = folder / ("emulated" if emulated else "idle")
        elf = interpreter.build(
            sources, network.file, compiled, soc if emulated else _bare(soc), place,
            replace(kit, libraries=(*kit.libraries, *libraries)), objects=objects,
            operators=("ETHOS_U",), emulated=emulated,
        )  # fmt: skip
        firmware = Firmware.open(elf, soc, soc.host.stack)
        read = {"output": firmware.symbols["output"].size, "arena_used": 4, "failed": 4}
        given = {"input": network.given.tobytes()}
        ran = run_qemu(firmware, given, read, entry=INVOKE, kernels=[])
        failed = int.from_bytes(ran.outputs["failed"], "little")
        if failed:
            raise RuntimeError(f"TFLite Micro failed on {network.name}: step {failed} of main.cc")
        apart = sum(-(-firmware.symbols[name].size // 16) * 16 for name in APART)
        memory = firmware.memory
        used = int.from_bytes(ran.outputs["arena_used"], "little") + ran.stack_used
        ram = memory.ram - memory.stack - apart + used
        return memory.flash, ram, ran.instructions, ran.outputs["output"]

    flash, ram, instructions, _ = measured([_idle(folder)], False)
    *_, output = measured([], True)
    file = compiled.stat().st_size
    return Row(
        network=network.name,
        by=_THEIRS,
        equal=output == network.wanted.tobytes(),
        code=flash - file,
        network_bytes=file,
        ram=ram,
        instructions=instructions,
    )


def _bare(soc: Soc) -> Soc:
    """Return the SoC without what answers in the driver's place that there is no device."""
    return replace(soc, driver=NO_DEVICES)


def _idle(folder: Path) -> Path:
    """Return the driver that does nothing, beside its header."""
    header = soc_folder(resolve(TARGET).soc) / "ethosu_driver.h"
    _written(folder / header.name, header.read_text("utf-8"))
    return _written(folder / "idle.c", _IDLE)


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def table(rows: Sequence[Row]) -> str:
    """Return rows, ours beside theirs, as a table in Markdown."""
    lines = [
        "| network | equal | code B, ours | TFLite Micro | of it | network B, ours | its file "
        "| RAM B, ours | TFLite Micro | of it | instructions, ours | TFLite Micro |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        equal = "both" if first.equal and second.equal else "no"
        lines.append(
            f"| {first.network} | {equal} "
            f"| {first.code:,} | {second.code:,} | {first.code / second.code:.0%} "
            f"| {first.network_bytes:,} | {second.network_bytes:,} "
            f"| {first.ram:,} | {second.ram:,} | {first.ram / second.ram:.0%} "
            f"| {first.instructions:,} | {second.instructions:,} |"
        )
    return "\n".join(lines)


@click.command(help=__doc__)
@click.argument("sources", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--network", "-n", multiple=True, type=click.Choice([*FILES]))
@click.option(
    "--models",
    type=click.Path(path_type=Path),
    default=_ROOT.parent / "shared" / "models" / "tflite",
    help="Folder of MLPerf Tiny's files, each in a folder with its golden.",
)
def main(sources: Path, network: tuple[str, ...], models: Path) -> None:
    """Measure, print the table, and without ``--network`` keep it."""
    without = replace(interpreter.Sources.below(sources), cmsis_nn=None, cmsis=None)
    soc = arm.on_qemu(resolve(TARGET).soc)
    soc = replace(soc, host=replace(soc.host, stack=_STACK))
    kit = kit_of("gcc", "-O2", soc)
    rows = []
    with tempfile.TemporaryDirectory(prefix="htvm-ethos-u-") as place:
        for name in network or FILES:
            one, folder = network_of(name, models), Path(place) / name
            rows.append(ours(one, soc, kit, folder / "ours"))
            (folder / "theirs").mkdir()
            rows.append(theirs(without, one, soc, kit, folder / "theirs", Path(place)))
    click.echo(table(rows))
    if not network:
        kept = {"versions": [*without.versions, kit.compiler.name], "rows": list(map(asdict, rows))}
        place = _ROOT / "docs" / "results" / "ethos_u_tflm.json"
        place.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
        text = _PAGE.read_text("utf-8")
        _PAGE.write_text(_BLOCK.sub(lambda m: f"{m[1]}{table(rows)}{m[2]}", text), "utf-8")
    if not all(row.equal for row in rows):
        sys.exit("outputs differ")


if __name__ == "__main__":
    sys.exit(exit_code(main, None))
