"""C of a language model's token loop, around the entry function of its decoding step."""

from __future__ import annotations

import itertools
import math
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.soc.base import round_up
from htvm.aot.entry import render, template_fields
from htvm.aot.literals import c_array
from htvm.tools.language import MASKED
from htvm.tools.language.interface import FIXED_INPUTS
from htvm.tools.language.sampling import HALVINGS

if TYPE_CHECKING:
    from htvm.aot.program import Program
    from htvm.tools.language import LanguageModel, StepInterface

_ALIGN = 16  # of each cache
_WORD = 4
_PARTS = ("_generate.h", "_generate.c", "_tokens.h", "_tokens.c")
_MAIN = "main_generate.c"
# The stored prompt, and the tokens after it.
_PROMPT = 4
_STEPS = 8


def loop_parts(name: str) -> tuple[str, ...]:
    """Return the names of all files of a token loop in an export."""
    return (*(f"{name}{part}" for part in _PARTS), _MAIN)


def loop_files(program: Program, language: LanguageModel) -> dict[str, str]:
    """Return the C files of a token loop: file name to text.

    ``<name>_generate.h`` and ``.c`` (interface and loop), ``<name>_tokens.h`` and ``.c`` (tables).

    Args:
        program: the built decoding step.
        language: the language model that it was built from.

    Raises:
        UnsupportedError: the step's attention depends on the order of positions; the loop replaces
            the oldest in place.
    """
    for node in language.graph.in_order:
        if node.kind == "ita_softmax":
            raise UnsupportedError(
                "the softmax adds positions in groups, so their order matters",
                where=f"layer '{node.name}', token loop of '{language.name}'",
                hint="use a softmax without groups; htvm.generate needs no token loop",
            )
    fields = loop_fields(program, language)
    return {f"{program.name}{part}": render(f"{part[1:]}.jinja", **fields) for part in _PARTS}


def exported_loop(program: Program, language: LanguageModel) -> dict[str, str]:
    """Return the files of `loop_files`, and a main for the host platform that checks them.

    It reads a prompt that TVM continues on this machine, and compares the tokens.
    """
    from htvm.aot.reference import build_llvm_reference
    from htvm.tools.language.loop import tokens_of

    count = min(_PROMPT, language.length, language.positions)
    prompt = [token % language.vocabulary for token in range(1, count + 1)]
    steps = min(_STEPS, language.positions - count + 1)
    endless = tokens_of(language, build_llvm_reference(language.module), prompt)
    tokens = list(islice(endless, steps))
    stored = {
        "prompt": c_array(np.asarray(prompt, "uint32")),
        "prompt_length": len(prompt),
        "expected": c_array(np.asarray(tokens, "uint32")),
        "expected_length": len(tokens),
    }
    main = render(f"{_MAIN}.jinja", **loop_fields(program, language), **stored)
    return {**loop_files(program, language), _MAIN: main}


def loop_fields(program: Program, language: LanguageModel) -> dict[str, Any]:
    """Return the fields that all templates of a token loop share."""
    sizes = language.interface
    indices = range(sizes.caches)
    state = ["state->embedded", "state->mask", "state->rotation"]
    homes = _homes(program, sizes)
    state += ["NULL" if near else f"(const int8_t *)state->cache[{at}]" for near, at in homes]
    state += ["state->hidden", *(f"(int8_t *)state->own[{i}]" for i in indices), "state->scores"]
    tables = (
        ("embedding", language.embedding, "hidden state of each token"),
        ("rotations", language.rotations, "rotation of each position"),
    )
    row = sizes.heads * sizes.head
    # Keys and values are copied in words where they consist of words.
    size = _WORD if sizes.head % _WORD == 0 else 1
    return {
        **template_fields(program),
        "vocabulary": language.vocabulary,
        "length": sizes.length,
        "positions": language.positions,
        "caches": sizes.caches,
        "near": sum(near for near, _ in homes),
        "homes": ", ".join(f"{at:#010x}u" if near else f"{at}u" for near, at in homes),
        "heads": sizes.heads,
        "head": sizes.head,
        "width": sizes.width,
        "cell": "uint32_t" if size == _WORD else "int8_t",
        "cells": f" Words of {_WORD} bytes." if size == _WORD else "",
        "head_cells": sizes.head // size,
        "cache_cells": round_up(row * sizes.length, _ALIGN) // size,
        "own_cells": round_up(row, _ALIGN) // size,
        "masked": MASKED,
        "prompt_room": sizes.length + 1,  # one more than allowed, so that the loop can refuse it
        "sharpness_one": 65536 * language.score_scale * math.log2(math.e),
        "halvings": c_array(np.asarray(HALVINGS, "uint32")),
        "arguments": ", ".join(["arena", *state]),
        "tables": [
            {
                "name": f"{program.name}_{name}",
                "elements": table.size,
                "comment": f"{comment}, {'x'.join(map(str, table.shape))}",
                "text": c_array(table),
            }
            for name, table, comment in tables
        ],
    }


def _homes(program: Program, sizes: StepInterface) -> list[tuple[bool, int]]:
    """Return whether each cache is in L1, with its address there, or else its row in the state."""
    places, row = dict(program.places), itertools.count()
    numbers = range(FIXED_INPUTS, FIXED_INPUTS + sizes.caches)
    return [(True, places[n]) if n in places else (False, next(row)) for n in numbers]
