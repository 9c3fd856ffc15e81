"""Helper: a region's program with one wait, or one of two buffers, left out: all in one build.

The C of each change is chosen by a number that the program reads, so that it is compiled once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from byoc_dory.errors import SimulationError
from byoc_dory.soc.base import Soc
from byoc_dory.soc.registry import resolve
from htvm.firmware import host, rv32
from htvm.firmware.host import HostProgram
from htvm.firmware.paths import driver_folders
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.host import run_host
from htvm.sim.rv32 import run_rv32
from tests.byoc_dory.program import Case, main_program, packed
from tests.byoc_dory.test_emit_rv32 import firmware_main

_CALLS = (
    "diana_digital_conv2d_finish", "diana_digital_depthwise_blocks_finish", "diana_dma_wait",
    "snitch_ita_wait_for", "siracusa_neureka_wait", "siracusa_neureka_wait_for",
    "siracusa_neureka_leave", "cluster_dma_wait", "cluster_dma_wait_all", "cluster_join",
)  # fmt: skip
_WAIT = re.compile(rf"(?P<code>code = )?(?P<call>\b(?P<name>{'|'.join(_CALLS)})\([^;]*\));")
_BEHIND = re.compile(r"siracusa_neureka_start_behind\(")
_BUFFER = re.compile(r"(?P<name>L1_\w+) \+ (?P<buffer>tile % 2u) \*")
_FUNCTION = re.compile(r"^int32_t (?P<name>\w+)\([^;]*\)\n\{\n(?:.*\n)*?\}\n", re.MULTILINE)
SLOWER = {
    "siracusa": ("dma.call_cycles", "neureka.job_cycles"),
    "snitch_ita": ("dma.call_cycles", "ita.tile_cycles"),
}
"""Numbers of descriptions by which a unit is made slower."""

_SLOW = 100_000
_LIMIT_S = 10
_READ = "int32_t code = htvm_host_read(0, all_in, sizeof all_in);"


@dataclass(frozen=True)
class Change:
    """Text in place of a part of a program: where it begins and ends, of which mutant it is."""

    begin: int
    end: int
    text: str
    what: str


def changes(text: str) -> Iterator[Change]:
    """The changes of a program; those of the same words belong together.

    Left out are waits that change nothing, as the DMA takes one transfer after another, and
    N-EUREKA and ITA one job: those for all transfers, and DIANA's for a result's, of layers before
    the last one, as each load is waited for; for a job of which only further ones depend; and for a
    buffer that no third tile takes.
    """
    functions, kernel_left = [*_FUNCTION.finditer(text)], False
    for function, behind in zip(functions, [*functions[1:], None], strict=True):
        body, first, name = function[0], function.start(), function["name"]
        is_last = behind is None
        to_ita = behind is not None and "snitch_ita_program(" in behind[0]
        two_tiles = "(2 in all" in text[:first].rpartition("/*")[2]
        for at in _BEHIND.finditer(body) if kernel_left else ():
            chosen = "(MUTANT ? siracusa_neureka_start : siracusa_neureka_start_behind)("
            yield Change(first + at.start(), first + at.end(), chosen, f"{name}: behind")
        for number, at in enumerate(_WAIT.finditer(body)):
            called, call, before = at["name"], at["call"], body[: at.start()]
            if called == "siracusa_neureka_leave":
                kernel_left = "NULL" not in call
            stores = before.rfind("_out_start(") > before.rfind("_in_start(")
            alone = body[at.end() :].lstrip().startswith("}")
            if (
                "NULL" in call
                or (not is_last and called == "cluster_dma_wait_all")
                or (not is_last and called == "diana_dma_wait" and stores)
                or (
                    called == "snitch_ita_wait_for" and to_ita and "_start(" not in body[at.end() :]
                )
                or (two_tiles and "stored[" in call)
                or (two_tiles and called == "siracusa_neureka_wait_for" and alone)
            ):
                continue
            chosen = f"code = MUTANT ? 0 : {call};" if at["code"] else f"if (!MUTANT) {{ {call}; }}"
            what = f"{name}: {called} {number}"
            yield Change(first + at.start(), first + at.end(), chosen, what)
        for at in _BUFFER.finditer(body):
            begin, end = (first + each for each in at.span("buffer"))
            what = f"{name}: one buffer {at['name']}"
            yield Change(begin, end, "(MUTANT ? 0u : tile % 2u)", what)


def with_mutants(text: str, declaration: str) -> tuple[str, list[str]]:
    """Return a program that is each of its mutants, by a number, and what is changed in these."""
    found = [*changes(text)]
    names = list(dict.fromkeys(each.what for each in found))
    for each in sorted(found, key=lambda each: -each.begin):
        chosen = each.text.replace("MUTANT", f"(mutant == {1 + names.index(each.what)}u)")
        text = text[: each.begin] + chosen + text[each.end :]
    return f"{declaration}\n{text}", names


class Programs:
    """A case as a program for this machine, where work is done late, and as a simulated one.

    Attributes:
        names: what is changed in each mutant.
    """

    def __init__(self, case: Case, soc: Soc, folder: Path) -> None:
        self._case, self._soc, self._folder = case, soc, folder
        text, self.names = with_mutants(main_program([case]), "static unsigned mutant;")
        read = f"{_READ}\n    code = htvm_host_read(1, &mutant, sizeof mutant);"
        self._native = self._file("native", text.replace(_READ, read))
        assert self.finder(0) == "", "the program itself is wrong"

    def finder(self, number: int) -> str:
        """Return how a mutant is found; empty if it is not."""
        for name, program in self._programs.items():
            given = [packed([self._case], outputs=False), number.to_bytes(4, "little")]
            try:
                (got,) = run_host(program, given, [len(self._wanted)], timeout_s=_LIMIT_S)
            except SimulationError as error:
                return name or ("hang" if "did not end" in str(error) else "complaint")
            if got != self._wanted:
                return name or "results"
        return "" if self._is_right(number) else "simulated"

    @cached_property
    def _wanted(self) -> bytes:
        return packed([self._case], outputs=True)

    @cached_property
    def _programs(self) -> dict[str, HostProgram]:
        """Native programs: the description's, and some with a unit so slow that all overtake it."""
        slow = [f"{number}={_SLOW}" for number in SLOWER.get(self._soc.name, ())]
        socs = {"": self._soc}
        socs |= {f"slow {each[:3]}": resolve(f"{self._soc.name}:{each}").soc for each in slow}
        return {
            name: host.build(
                [self._native], [], soc, self._folder / (name or "as it is"), Compiler.zig()
            )
            for name, soc in socs.items()
        }

    def _is_right(self, number: int) -> bool:
        """Whether nobody complains of a mutant on the simulator, and its results are right."""
        inputs = {f"in_{at}": values.tobytes() for at, values in enumerate(self._case.inputs)}
        sizes = {f"out_{at}": values.size for at, values in enumerate(self._case.outputs)}
        try:
            ran = run_rv32(
                self._firmware, {**inputs, "mutant": number.to_bytes(4, "little")}, sizes
            )
        except SimulationError:
            return False
        return b"".join(ran.outputs[name] for name in sizes) == self._wanted

    @cached_property
    def _firmware(self) -> rv32.Firmware:
        declaration = '__attribute__((section(".noinit"))) unsigned mutant;'
        text, _ = with_mutants(firmware_main(self._case), declaration)
        soc = self._soc
        return rv32.build_firmware(
            [self._file("firmware", text), *host.driver_sources(soc)],
            driver_folders(soc),
            machine_of(soc),
            self._folder / "out",
            Compiler.zig(),
            stack_bytes=soc.host.stack,
        )

    def _file(self, name: str, text: str) -> Path:
        path = self._folder / f"{name}.c"
        path.write_text(text)
        return path
