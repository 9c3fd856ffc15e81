"""The runtime's functions in the estimate of the code: what is called, and how large it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import htvm
from byoc_dory.soc.registry import resolve
from htvm import zoo
from htvm.aot.program import Program
from htvm.cli.arguments import open_model
from htvm.fitting import library_size
from htvm.fitting.code_size import TOLERANCE, code_bytes
from htvm.fitting.library_size import called_functions
from htvm.fitting.preprocessing import preprocessed
from htvm.module import Module
from tests.models_onnx import onnx_path

# How the names of the runtime's functions begin that other files call.
RUNTIME = ("cluster_", "diana_", "htvm_parallel_", "siracusa_", "snitch_")


def hold(module: Module) -> None:
    """The estimate against the firmware: its size, and which functions are in it."""
    compiled = module.compiled
    estimate = code_bytes(compiled)
    assert abs(estimate - module.sizes.code) <= TOLERANCE * min(estimate, module.sizes.code)
    assert module.built.firmware is not None
    linked = module.built.firmware.symbols
    counted = {name for _, name in called_functions(compiled.program, compiled.target.soc)}
    assert {name for name in linked if name.startswith(RUNTIME) and "." not in name} == {
        name for name in counted if name.startswith(RUNTIME)
    }


def test_kernels_of_a_cluster_are_counted() -> None:
    hold(htvm.build(zoo.build("toyadmos"), "snitch_ita"))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["diana.digital", "siracusa", "siracusa.cluster", "snitch_ita"])
@pytest.mark.parametrize("network", ["digits", "ds_cnn", "resnet8"])
def test_code_on_socs_with_libraries(network: str, target: str) -> None:
    hold(htvm.build(open_model(f"zoo:{network}"), target))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["siracusa", "siracusa.cluster", "snitch_ita"])
def test_code_of_a_transformer(target: str) -> None:
    hold(htvm.build(onnx_path("deeploy_networks/CCT/Int/ICCT_ITA"), target))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Transformer_DeepQuant", "miniMobileNet"])
def test_code_of_networks_on_the_cpu(name: str) -> None:
    """Of kernels for small maps, most loops are unrolled."""
    module = htvm.build(onnx_path(f"deeploy_networks/{name}"), "diana")
    hold(module)
    assert code_bytes(module.compiled) == pytest.approx(module.sizes.code, rel=0.1)


LIBRARY = """
#define STEP x += 1;
static inline int twice(int x) { return x + x; }
static int own(int x) { return x; }
int used(int x) { STEP STEP return own(x); }
int inlining(int x) { return twice(x) + twice(x); }
int assembly(int x) { __asm__("nop\\n.option pop\\n1: add %0, %0, %0\\n" : "+r"(x)); return x; }
int unused(int x) { return x + x + x; }
"""


def test_called_functions_and_inline_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_driver.c").write_text(LIBRARY)
    monkeypatch.setattr(library_size, "driver_sources", lambda soc: (tmp_path / "a_driver.c",))
    soc = replace(resolve("diana").soc, name="with a library")
    source = "int f(void) { return used(1) + inlining(2) + assembly(3); /* unused() */ }"
    program = SimpleNamespace(layers_source=source, cpu_source="", headers=(), cpu_headers=())
    found = called_functions(cast(Program, program), soc)
    assert {name: size for (_, name), size in found.items()} == {
        "used": 13,  # x += 1 ; twice, return own ( x ;
        "own": 3,
        "inlining": 9 + 2 * 5,
        "assembly": 1 + 3 + 2 * 4,  # a semicolon, return x ; two instructions
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#define A 1u\nint x = A;", "int x = 1u;"),
        ("#define A(x, y) x##_##y + (x)\nA(b, c) A", "b_c + (b) A"),
        ("#define A A + B\n#define B A\nA", "A + A"),
        ('#define A(x) #x "A" x\nA(b)', '"b" "A" b'),
        ("#define A(x) f(x)\nA((1, 2)) A(')')", "f((1, 2)) f(')')"),
        ("#if N == 2 && !defined(M)\nyes\n#else\nno\n#endif", "yes"),
        ("#if defined M || 0x10u > N\nyes\n#elif 1\nno\n#endif", "yes"),
        ("#ifdef M\n#if 1\nno\n#else\nno\n#endif\n#else\nyes\n#endif", "yes"),
        ("#if __has_builtin(x)\nno\n#else\nyes\n#endif", "yes"),
        ('#include "a.h"\n#include "a.h"\nH', "2"),
        ("a /* \" */ b // c\n'\"' /* d */", "a b '\"'"),
    ],
)
def test_preprocessing(text: str, words: str) -> None:
    headers = {"a.h": "#define H N"}
    assert preprocessed(text, "t.c", [], {"N": "2"}, headers).split() == words.split()
