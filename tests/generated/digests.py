"""A helper of tests: SHA-256 of every generated C file of whole networks, in one JSON file.

Texts of that size would be read by nobody; that they change should be seen all the same.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm import relax
from tvm.ir import GenericConst

import htvm
from byoc_dory.options import TilingOptions
from htvm.aot.entry import model_sources
from htvm.build_options import BuildOptions
from htvm.pipeline import compile_model
from tests.generated.golden import GOLDEN, without_origin
from tests.models import model_path
from tests.models_onnx import onnx_path

FILE = GOLDEN / "digests.json"

INPUT = "(input)"
"""Entry beside the files: of what was compiled, for models that are quantized on the spot."""

NETWORKS = ("resnet8", "ds_cnn", "mobilenet_v1", "toyadmos")
SCHEDULES = ("overlapped", "published")
CORES = ("diana", "diana.digital", "diana.analog", "diana.mixed")
CLUSTER = ("snitch_ita", "snitch_ita.cluster")
SIRACUSA = ("siracusa", "siracusa.cluster")


@dataclass(frozen=True)
class Build:
    """A network, what it is compiled for, and how.

    Attributes:
        model: ``zoo:NAME[:SCHEME]``, ``tflite:NAME`` or ``onnx:NAME``, a development model.
        target: of `htvm.targets`.
        option: a schedule, or ``"default"`` (kernels of plain TVM).
        everyday: whether it is compared every day.
    """

    model: str
    target: str
    option: str
    everyday: bool = False

    def __str__(self) -> str:
        return f"{self.model} {self.target} {self.option}"


EVERY_DAY = {
    "zoo:resnet8 diana.digital published",
    "zoo:resnet8 diana.digital overlapped",
    "zoo:resnet8 generic.cpu default",
    "zoo:resnet8:ternary diana.analog overlapped",
    "zoo:resnet8:mixed diana.mixed overlapped",
    "zoo:ds_cnn snitch_ita.cluster overlapped",
    "zoo:ds_cnn snitch_ita.cluster published",
    "zoo:ds_cnn siracusa overlapped",
    "zoo:toyadmos diana.cpu overlapped",
    "zoo:toyadmos diana.simd.cpu overlapped",
    "zoo:digits diana overlapped",
    "zoo:encoder:1 snitch_ita overlapped",
    "onnx:deeploy_networks/miniMobileNet snitch_ita.cluster overlapped",
}


def _all() -> Iterator[tuple[str, str, str]]:
    for net in NETWORKS:
        yield from ((f"zoo:{net}", t, s) for t in (*CORES, *CLUSTER) for s in SCHEDULES)
        yield from ((f"zoo:{net}", t, "overlapped") for t in ("diana.cpu", "snitch_ita.cpu"))
        yield from ((f"zoo:{net}", t, s) for t in SIRACUSA for s in (*SCHEDULES, "decoupled"))
        yield from ((f"zoo:{net}", t, "overlapped") for t in ("diana.simd", "diana.simd.cpu"))
        yield from ((f"zoo:{net}", "generic.cpu", o) for o in ("overlapped", "default"))
        yield from ((f"zoo:{net}:ternary", t, s) for t in CORES for s in SCHEDULES)
        yield from ((f"zoo:{net}:mixed", t, s) for t in ("diana", CORES[3]) for s in SCHEDULES)
    for net in ("digits", "digits_ternary"):
        yield from ((f"zoo:{net}", t, s) for t in (*CORES, CLUSTER[1]) for s in SCHEDULES)
        yield f"zoo:{net}", "generic.cpu", "overlapped"
    yield from (("zoo:encoder:1", t, s) for t in CLUSTER for s in SCHEDULES)
    yield from (("zoo:encoder:1", t, "overlapped") for t in ("snitch_ita.cpu", "generic.cpu"))
    for name, targets in {
        "tflite:pretrainedResnet_quant": ("diana", "diana.mixed", "snitch_ita.cluster"),
        "tflite:kws_ref_model": ("diana", "generic.cpu"),
        "tflite:ad01_int8": ("diana",),
        "onnx:deeploy_networks/miniMobileNet": ("snitch_ita.cluster",),
        "onnx:deeploy_networks/CCT/Int/ICCT_ITA": ("snitch_ita",),
        "onnx:deeploy_networks/microLlama/INT8/microLlama1": ("snitch_ita.cluster", "siracusa"),
        "onnx:deeploy_networks/Transformer_DeepQuant": ("snitch_ita.cluster", "generic.cpu"),
        "onnx:match_models/drone_regressor": ("snitch_ita.cluster",),
    }.items():
        yield from ((name, target, schedule) for target in targets for schedule in SCHEDULES)


BUILDS = tuple(Build(*parts, " ".join(parts) in EVERY_DAY) for parts in _all())
"""Those of a model follow each other, so that it is loaded once."""


@functools.lru_cache(maxsize=1)
def loaded(name: str) -> htvm.Model:
    """The model; skips the test where its file or a package is not at hand."""
    kind, _, rest = name.partition(":")
    if kind == "tflite":
        return htvm.load(model_path(rest))
    if kind == "onnx":
        return htvm.load(onnx_path(rest))
    net, _, scheme = rest.partition(":")
    return htvm.zoo.build(net, scheme=scheme or "8-bit")


def sha256(text: str) -> str:
    """Of a generated file, whatever version and model its head names."""
    return hashlib.sha256(without_origin(text).encode()).hexdigest()


def input_digest(model: htvm.Model) -> str:
    """Of the model's interface and its arrays of constants, however they are used."""
    arrays: list[bytes] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, GenericConst) and expr.value.numpy().size > 1:
            arrays.append(expr.value.numpy().tobytes())

    relax.analysis.post_order_visit(model.module["main"], visit)
    interface = repr((model.inputs, model.outputs)).encode()
    return hashlib.sha256(b"".join([interface, *sorted(arrays)])).hexdigest()


def quantized_on_the_spot(build: Build) -> bool:
    """Whether float arithmetic of this machine decides what is compiled."""
    return build.model.startswith("zoo:digits")


def digests_of(build: Build) -> dict[str, str]:
    """The SHA-256 of each generated file, by its name."""
    model = loaded(build.model)
    options = BuildOptions(cpu_kernels="default")
    if build.option != "default":
        options = BuildOptions(tiling=TilingOptions(schedule=build.option))  # type: ignore[arg-type]
    program = compile_model(model, build.target, options).program
    found = {name: sha256(text) for name, text in model_sources(program).items()}
    if quantized_on_the_spot(build):
        found[INPUT] = input_digest(model)
    return dict(sorted(found.items()))


def known_digests(file: Path = FILE) -> dict[str, dict[str, str]]:
    """What is kept, by the build's text."""
    known: dict[str, dict[str, str]] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return known


def write_digests(found: dict[str, dict[str, str]], file: Path = FILE) -> None:
    """Keep these; entries of builds that are no more are dropped."""
    names = {str(build) for build in BUILDS}
    kept = {name: files for name, files in found.items() if name in names}
    text = json.dumps(kept, indent=1, sort_keys=True) + "\n"
    file.write_text(text, encoding="utf-8", newline="\n")
