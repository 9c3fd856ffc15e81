"""`generate`: a language model writes tokens, step after step, on the simulated SoC."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from htvm.errors import InputError, ModelError
from htvm.module import Module
from htvm.public import public
from htvm.shown import Shown
from htvm.tools.language import Draws, LanguageModel, sharpness_of
from htvm.tools.language.loop import tokens_of
from htvm.tools.plots.bars import counted, new_figure
from htvm.tools.plots.colours import LIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from byoc_dory.layers import Array
    from byoc_dory.soc.base import Soc
    from htvm.tools.language.loop import Step

_WHERE = "htvm.generate"
_LARGEST_SEED = 2**64 - 1


@dataclass(frozen=True)
class TokenStep:
    """One step of a generation.

    Attributes:
        reads: id of the token that the step reads.
        writes: id of the token that is written after it; None within the prompt.
        cycles: its cycles; None without cycles.
        ms: the same in ms at the SoC's clock.
    """

    reads: int
    writes: int | None
    cycles: int | None
    ms: float | None


@public
@dataclass(frozen=True, repr=False)
class Generation(Shown):
    """What a language model wrote, and what it took.

    Each token of the prompt is a step, and so is each written token but the last, which is not read
    again.  Tokens are looked up and chosen on this machine: the cycles are those of the network,
    scores of the next token included.

    Attributes:
        tokens: ids of the tokens that were written.
        prompt: ids of the tokens that were read first.
        cycles: cycles of each step, those of the prompt first; None without cycles.
        clock_hz: clock of the SoC; None without cycles.
        uj: energy of all steps in microjoules, of the parts whose power is known; None if none is.
        uj_cycles: cycles that this energy covers.
    """

    tokens: tuple[int, ...]
    prompt: tuple[int, ...]
    cycles: tuple[int, ...] | None
    clock_hz: float | None
    uj: float | None
    uj_cycles: int

    @property
    def steps(self) -> tuple[TokenStep, ...]:
        """The steps in their order, those of the prompt first."""
        read = (*self.prompt, *self.tokens[:-1])
        first = len(self.prompt) - 1
        steps = []
        for place, token in enumerate(read):
            writes = self.tokens[place - first] if place >= first else None
            cycles = None if self.cycles is None else self.cycles[place]
            lasts = None
            if cycles is not None and self.clock_hz is not None:
                lasts = 1000.0 * cycles / self.clock_hz
            steps.append(TokenStep(token, writes, cycles, lasts))
        return tuple(steps)

    def _rows(self) -> tuple[object, ...]:
        return self.steps

    def __repr__(self) -> str:
        """Return the tokens and the speed, in lines of 80 characters."""
        said = f"Generation: {len(self.prompt)} tokens read, {len(self.tokens)} written"
        if self.cycles_per_token is not None:
            said += f", {self.cycles_per_token:,.0f} cycles each"
        if self.tokens_per_second is not None:
            said += f", {self.tokens_per_second:,.1f} a second"
        if self.uj_per_token is not None:
            said += f", {self.uj_per_token:,.2f} uJ each"
        tokens = textwrap.fill(" ".join(map(str, self.tokens)), 80)
        return f"{textwrap.fill(said, 80)}\n{tokens}"

    def plot_cycles(self) -> Figure:
        """Plot the cycles of each step; those of the prompt are hollow.

        Raises:
            DependencyError: matplotlib is not installed.
            InputError: there are no cycles: the model was not built.
        """
        if self.cycles is None:
            raise InputError(
                "there are no cycles to plot",
                where="Generation",
                hint="generate with a module of htvm.build, on a platform with cycles",
            )
        figure = new_figure(8.0, 3.0)
        axes = figure.add_subplot()
        prompt = len(self.prompt)
        for begin, end, face, said in (
            (0, prompt, "none", "reads the prompt"),
            (prompt, len(self.cycles), LIGHT["ink"], "reads what it wrote"),
        ):
            if begin < end:
                axes.bar(range(begin, end), self.cycles[begin:end], color=face,
                         edgecolor=LIGHT["ink"], label=said)  # fmt: skip
        axes.set(xlabel="step", ylabel="cycles", title=f"{sum(self.cycles):,} cycles")
        axes.yaxis.set_major_formatter(counted)
        axes.legend(frameon=False)
        return figure

    @property
    def cycles_per_token(self) -> float | None:
        """Mean cycles of a step; None without cycles."""
        return None if self.cycles is None else sum(self.cycles) / len(self.cycles)

    @property
    def tokens_per_second(self) -> float | None:
        """Steps per second at the SoC's clock; None without cycles."""
        if self.cycles_per_token is None or self.clock_hz is None:
            return None
        return self.clock_hz / self.cycles_per_token

    @property
    def uj_per_token(self) -> float | None:
        """Mean energy of a step in microjoules; None if it is not known."""
        steps = len(self.prompt) + len(self.tokens) - 1
        return None if self.uj is None else self.uj / steps


@public
def generate(
    model: Module | LanguageModel,
    tokens: Sequence[int],
    steps: int,
    *,
    temperature: float = 0.0,
    seed: int = 0,
) -> Generation:
    """Read a prompt, and write tokens after it.

    The cache starts empty and is kept between steps: a window of the last L tokens, of which those
    that do not exist yet are masked.

    Args:
        model: a module built from a `LanguageModel`, which runs on its simulated SoC; or the
            language model itself, which TVM computes on this machine, with the same tokens and
            without cycles.
        tokens: ids of the prompt, at least one and at most as many as the cache has positions.
        steps: number of tokens to write.
        temperature: 0 for the token with the highest score, of equal ones that of the lower id;
            above 0, tokens are drawn in integer arithmetic (see `htvm.tools.language.sampling`).
        seed: seed of the draws; the same seed gives the same tokens everywhere.

    Raises:
        ModelError: the model is no language model.
        InputError: an id is not in the vocabulary, the prompt is empty or longer than the cache,
            there are more tokens than positions, or an option is out of range.
        SimulationError: the core trapped, or a device model complained.
    """
    language = _language(model)
    prompt = check(language, tokens, steps, temperature=temperature, seed=seed)
    sharpness = sharpness_of(temperature, language.score_scale)
    runner = _Simulated(model) if isinstance(model, Module) else _Computed(language)
    endless = tokens_of(language, runner.step, prompt, sharpness, Draws(seed))
    written = tuple(islice(endless, steps))
    return runner.generation(written, prompt)


def check(
    language: LanguageModel,
    tokens: Sequence[int],
    steps: int,
    *,
    temperature: float = 0.0,
    seed: int = 0,
) -> tuple[int, ...]:
    """Return the prompt, if a language model could be given this; arguments as for `generate`.

    Raises:
        InputError: it could not.
    """
    ids = list(tokens)
    if not ids:
        raise InputError(
            "the prompt is empty", where=_WHERE, hint="give at least one token to continue"
        )
    for place, token in enumerate(ids):
        whole = isinstance(token, (int, np.integer)) and not isinstance(token, bool)
        if not whole or not 0 <= token < language.vocabulary:
            raise InputError(
                f"the vocabulary has no token {token!r}",
                where=f"{_WHERE}, token {place} of the prompt",
                hint=f"ids are 0 to {language.vocabulary - 1}",
            )
    if len(ids) > language.length:
        raise InputError(
            f"a prompt of {len(ids)} tokens, the cache has {language.length} positions",
            where=_WHERE,
            hint="give its last tokens, or build a step with a longer cache",
        )
    _check_whole("steps", steps, 1)
    if len(ids) + steps - 1 > language.positions:
        raise InputError(
            f"{len(ids)} tokens and {steps} steps, there are rotations for {language.positions} "
            "positions",
            where=_WHERE,
            hint="write fewer tokens, or give the language model more rotations",
        )
    sharpness_of(temperature, language.score_scale)
    _check_whole("seed", seed, 0, _LARGEST_SEED)
    return tuple(int(token) for token in ids)


class _Computed:
    """Steps computed by TVM on this machine."""

    def __init__(self, language: LanguageModel) -> None:
        from htvm.aot.reference import build_llvm_reference

        self.step: Step = build_llvm_reference(language.module)

    def generation(self, tokens: tuple[int, ...], prompt: tuple[int, ...]) -> Generation:
        """Return what was written."""
        return Generation(tokens, prompt, None, None, None, 0)


class _Simulated:
    """Steps on the simulated SoC, and what they take."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._soc: Soc = module.compiled.target.soc
        self._cycles: list[int] = []
        self._uj: list[float] = []
        self._covered = 0

    def step(self, inputs: list[Array]) -> list[Array]:
        """Run one step."""
        from htvm.tools.facts.run import energy_of

        result = self._module.run(inputs)
        if result.cycles is not None:
            self._cycles.append(result.cycles)
            energy = energy_of(self._soc, result.layers)
            if energy is not None:
                self._uj.append(energy.microjoules)
                self._covered += energy.cycles
        return result.outputs

    def generation(self, tokens: tuple[int, ...], prompt: tuple[int, ...]) -> Generation:
        """Return what was written, with its cycles and energy."""
        if not self._cycles:
            return Generation(tokens, prompt, None, None, None, 0)
        uj = sum(self._uj) if self._uj else None
        clock = self._soc.clock_hz
        return Generation(tokens, prompt, tuple(self._cycles), clock, uj, self._covered)


def _language(model: Module | LanguageModel) -> LanguageModel:
    """Return the language model, or refuse anything else."""
    language = model.compiled.source if isinstance(model, Module) else model
    if isinstance(language, LanguageModel):
        return language
    what = f"'{model.name}'" if isinstance(model, Module) else f"a {type(model).__name__}"
    raise ModelError(
        f"{what} is no language model",
        where=_WHERE,
        hint="build an htvm.LanguageModel; LanguageModel.of(step) makes one of a decoding step",
    )


def _check_whole(name: str, value: int, least: int, most: int | None = None) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        raise InputError(
            f"{name} cannot be {value!r}",
            where=f"{_WHERE}, option '{name}'",
            hint=f"a whole number from {least} " + ("on" if most is None else f"to {most}"),
        )
