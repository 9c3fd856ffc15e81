"""A small language model on Siracusa: tokens a second, and microjoules a token.

A decoding step reads one token and a cache of keys and values, and returns the hidden state with
the token's own keys and values, which whoever keeps the cache writes in place; the published files
return whole caches instead ("whole").  Caches are full, so that every position counts.  Prompts are
read by the same network without a cache, all tokens at once.  Cycles are those of the
generated C on the simulator, transfers, drivers and host code included, from L2 to L2 at 360 MHz
(assumed; the publication does not say its clock).  Of the caches that the caller keeps, as many as
save cycles stay in L1 between steps ("in L1 kB"), where the step finds them.  Code, other caches
and intermediate tensors are in L2, weights there or in the engine's weight memory, so all of it is
on chip.  Steps and prompts are
zoo:microllama, with seeded weights and the published network's operators; its own files are
measured, too, where they are at hand.  Embedding and scores of the next token are not in these
files; the table of the token loop has them, with a cache that is still filling.

Published are 340 tokens/s and 490 uJ a token, with N-EUREKA; the length of the cache is not said.
Energy is that publication's average power (167 mW) times our time: an estimate.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import htvm
from benchmarks.artefact import Artefact, main, write
from benchmarks.made_of import RowSource, computed, program
from benchmarks.siracusa_published import TOKENS
from benchmarks.token_loops import build_token_loop, run_token_loop
from byoc_dory.soc.registry import resolve
from htvm import zoo
from htvm.inputs import seeded_inputs
from htvm.model import Model
from htvm.progress import Progress
from htvm.tools.language import MASKED, sharpness_of
from htvm.tools.language.rewrite import in_place
from htvm.tools.report.table import Column, Table, text

__all__ = ["LENGTHS", "PROMPTS", "TARGETS", "made_of", "run"]

TARGETS = ("siracusa.cluster", "siracusa")
TITLES = {"siracusa.cluster": "eight cores", "siracusa": "with N-EUREKA"}
LENGTHS = (1, 4, 16, 64, 128, 256)
PROMPTS = (1, 4, 16, 64)
LOOP_LENGTH = 64
LOOP_PROMPT = tuple(range(1, 5))
LOOP_STEPS = 5

# The published network's files: kind of step, its size, and the folder.
FILES = (
    ("decode", 1, "microLlama1"),
    ("decode", 64, "microLlama64"),
    ("decode", 256, "microLlama256"),
    ("prompt", 1, "microLlama1_parallel"),
    ("prompt", 16, "microLlama16_parallel"),
)
FOLDER = Path(__file__).resolve().parents[2] / "shared/models/deeploy_networks/microLlama/INT8"

_COMMON = (
    Column("weights"),
    Column("target"),
    Column("kcycles", number=True),
    Column("ms", number=True),
    Column("tokens/s", number=True),
    Column("of published", number=True),
    Column("uJ/token", number=True),
    Column("published uJ", number=True),
    Column("L2 kB", number=True),
    Column("= reference"),
)
DECODE = (
    Column("cache", number=True), Column("returned"), Column("in L1 kB", number=True), *_COMMON
)  # fmt: skip
PREFILL = (Column("tokens", number=True), *_COMMON)
LOOP = (
    Column("target"),
    Column("next token"),
    Column("kcycles", number=True),
    Column("network", number=True),
    Column("rest", number=True),
    Column("tokens/s", number=True),
    Column("L2 kB", number=True),
    Column("= htvm.generate"),
)


@dataclass(frozen=True)
class Run:
    """An inference.

    Attributes:
        kind: ``"decode"`` or ``"prompt"``.
        size: positions of the cache, or tokens of the prompt.
        weights: ``"seeded"`` or ``"file"``.
        target: name of the target.
        cycles: of the inference.
        l2: bytes of L2: code, constants, intermediate tensors, inputs and outputs.
        exact: whether all outputs equal the integer definition.
        whole: whether a decoding step returns whole caches.
        l1: bytes of caches that stay in L1 between steps.
    """

    kind: str
    size: int
    weights: str
    target: str
    cycles: int
    l2: int
    exact: bool
    whole: bool = False
    l1: int = 0

    @property
    def tokens(self) -> int:
        """Tokens that are read."""
        return 1 if self.kind == "decode" else self.size


@dataclass(frozen=True)
class LoopRun:
    """A token loop in C, averaged over tokens.

    Attributes:
        target: name of the target.
        choice: how the next token is chosen.
        cycles, network: cycles a token, and those of the network.
        l2: bytes of L2.
        exact: whether it wrote the same tokens as `htvm.generate`.
    """

    target: str
    choice: str
    cycles: float
    network: float
    l2: int
    exact: bool


def measure(
    kind: str, size: int, weights: str, model: Model, target: str, *, whole: bool = False
) -> Run:
    """Build a network, run it on the simulator, and compare with the integer definition."""
    inputs = seeded_inputs(model.inputs)
    mask = inputs[1]
    mask[...] = 0
    if mask.ndim > 1:  # each token of a prompt reads those up to itself
        mask[..., :, :] = np.triu(np.full(mask.shape[-2:], MASKED, "int8"), 1)
    module = htvm.build(model, target=target)
    result = module.run(inputs)
    assert result.cycles is not None
    pairs = zip(result.outputs, module.reference(inputs), strict=True)
    exact = all(np.array_equal(a, b) for a, b in pairs)
    sizes = module.sizes.total, module.compiled.state.bytes
    return Run(kind, size, weights, target, result.cycles, sizes[0], exact, whole, sizes[1])


def measure_loop(target: str) -> Iterator[LoopRun]:
    """Run the token loop in C, greedy and drawn."""
    model = zoo.microllama(LOOP_LENGTH)
    module = htvm.build(model, target=target)
    built = build_token_loop(module.built, model)
    for choice, temperature in (("highest score", 0.0), ("drawn", 1.0)):
        wanted = htvm.generate(module, LOOP_PROMPT, LOOP_STEPS, temperature=temperature)
        sharpness = sharpness_of(temperature, model.score_scale)
        found = run_token_loop(built, model, LOOP_PROMPT, LOOP_STEPS, sharpness=sharpness)
        assert found.cycles is not None and wanted.cycles_per_token is not None
        # Only of the last token of the prompt, and of those behind it, is the next one chosen.
        written = len(LOOP_PROMPT) - 1
        whole = float(np.mean(found.cycles[written:]))
        assert wanted.cycles is not None
        network = float(np.mean(wanted.cycles[written:]))
        exact = found.code == 0 and found.tokens[:LOOP_STEPS] == wanted.tokens
        yield LoopRun(target, choice, whole, network, built.sizes.total, exact)


def networks() -> Iterator[tuple[str, int, str, Model, bool]]:
    """Yield kind, size, where the weights are from, the network, and whether caches are whole."""
    for length in LENGTHS:
        yield "decode", length, "seeded", _step(length), False
    for tokens in PROMPTS:
        yield "prompt", tokens, "seeded", zoo.microllama_prompt(tokens), False
    for kind, size, name in FILES:
        path = FOLDER / name / "network.onnx"
        if path.is_file():
            model = htvm.load(path)
            if kind == "decode":
                yield kind, size, "file", in_place(model), False
            yield kind, size, "file", model, kind == "decode"


def made_of() -> Iterator[RowSource]:
    """Every program that the tables are made of."""
    for target in TARGETS:
        for length in LENGTHS:
            yield program(f"microllama after {length}", partial(_step, length), target)
        for tokens in PROMPTS:
            model = partial(zoo.microllama_prompt, tokens)
            yield program(f"prompt of {tokens}", model, target)
        for kind, _, name in FILES:
            path = FOLDER / name / "network.onnx"
            yield program(name, partial(htvm.load, path), target, needs=path)
            if kind == "decode":
                model = partial(_in_place, path)
                yield program(f"{name} in place", model, target, needs=path)
        yield computed(f"token loop on {target}", partial(_loops, target))


def _loops(target: str) -> list[LoopRun]:
    return list(measure_loop(target))


def _step(length: int) -> Model:
    return in_place(zoo.microllama(length).step)


def _in_place(path: Path) -> Model:
    return in_place(htvm.load(path))


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Put the published tokens a second on Siracusa beside ours."""
    progress = progress or Progress()
    runs: list[Run] = []
    for kind, size, weights, model, whole in networks():
        for target in TARGETS:
            with progress.stage(f"{kind} {size}, {weights} weights, on {target}"):
                runs.append(measure(kind, size, weights, model, target, whole=whole))
    loops: list[LoopRun] = []
    for target in TARGETS:
        with progress.stage(f"token loop on {target}"):
            loops += measure_loop(target)
    tables = [
        _table(DECODE, runs, "decode", "Decoding, by positions of the cache"),
        _table(PREFILL, runs, "prompt", "Prompts, by their number of tokens"),
        text(
            Table(
                LOOP,
                tuple(map(_loop_row, loops)),
                title=f"The token loop in C: 256 tokens, a cache of {LOOP_LENGTH} positions",
            )
        ),
    ]
    exact = all(each.exact for each in (*runs, *loops))
    words = f"All outputs as defined: {'yes' if exact else 'NO'}."
    artefact = Artefact(
        "llama",
        "Siracusa: a language model that decodes on chip",
        "\n\n".join([str(__doc__).strip(), words, *tables]),
        {"inferences": [vars(each) for each in runs], "loops": [vars(each) for each in loops]},
    )
    write(artefact, folder)
    return artefact


def _table(columns: tuple[Column, ...], runs: list[Run], kind: str, title: str) -> str:
    rows = sorted((each for each in runs if each.kind == kind), key=lambda each: each.size)
    return text(Table(columns, tuple(map(_row, rows)), title=title))


def _row(found: Run) -> tuple[str, ...]:
    ms = resolve(found.target).soc.cycles_to_ms(found.cycles)
    per_second = 1000 * found.tokens / ms
    returned: tuple[str, ...] = ()
    if found.kind == "decode":
        returned = ("whole" if found.whole else "own", f"{found.l1 / 1e3:.0f}")
    return (
        str(found.size),
        *returned,
        found.weights,
        TITLES[found.target],
        f"{found.cycles / 1e3:.0f}",
        f"{ms:.2f}",
        f"{per_second:.0f}",
        f"{per_second / TOKENS.per_second:.2f}",
        f"{_milliwatts(found.target) * ms / found.tokens:.0f}",
        f"{TOKENS.uj:g}",
        f"{found.l2 / 1e3:.0f}",
        "yes" if found.exact else "NO",
    )


def _loop_row(found: LoopRun) -> tuple[str, ...]:
    ms = resolve(found.target).soc.cycles_to_ms(found.cycles)
    return (
        TITLES[found.target],
        found.choice,
        f"{found.cycles / 1e3:.0f}",
        f"{found.network / 1e3:.0f}",
        f"{(found.cycles - found.network) / 1e3:.1f}",
        f"{1000 / ms:.0f}",
        f"{found.l2 / 1e3:.0f}",
        "yes" if found.exact else "NO",
    )


def _milliwatts(target: str) -> float:
    power = resolve(target).soc.power("cluster")
    assert power is not None
    return power.milliwatts


if __name__ == "__main__":
    sys.exit(main(run))
