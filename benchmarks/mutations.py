"""Mutated node cases of the package onnx: whatever is still read must be computed as it says.

    python -m benchmarks.mutations [--of onnx | tflite | bytes | built] [--count 5000]
                                   [--seed 1] [--write docs/mutations.md]

Each mutant is a case (`benchmarks.onnx_cases`, constants folded) with one to three changes, drawn
from a seed: an optional input is dropped or added, an attribute is set, removed or replaced by
another value, the element type or the shape of a constant is changed.  What is read is run by the
interpreter of the integer form, and compared with the reference implementation of the package
onnx; where they differ, with onnxruntime, too, which decides.  A mutant may be refused, but must
not be wrong and must not crash.  `benchmarks.tflite_mutations` does the same with TFLite files,
`benchmarks.damage` changes bytes of both, and `benchmarks.built_mutations` builds layers for
accelerators, two for every five of the others.  Without ``--of``, all of them run; ``--write``
writes the page with what came out.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import htvm
from benchmarks import built_mutations, damage, onnx_cases, tflite_mutations
from benchmarks.made_of import RowSource, computed, record
from benchmarks.mutant import Mutant, failure

__all__ = ["Count", "campaign", "counted", "made_of", "page"]

_TEXTS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "constant", "reflect", "edge", "nearest",
          "linear", "cubic", "half_pixel", "align_corners", "asymmetric", "floor", "ceil",
          "round_prefer_ceil", "tanh", "none", "DCR", "CRD", "stretch")  # fmt: skip


def campaign(
    count: int, seed: int, interpret: Callable[..., Any], first: int = 0
) -> Iterator[Mutant]:
    """Yield the outcome of each mutant from a number on; the same ones for the same seed."""
    bases = []
    for case in onnx_cases.cases():
        inputs, outputs = (list(part) for part in case.data_sets[0])
        if any(not isinstance(item, np.ndarray) for item in (*inputs, *outputs)):
            continue
        made = onnx_cases.FORMED["constants folded"](case.model, inputs, outputs)
        made = made or onnx_cases.FORMED["as it is"](case.model, inputs, outputs)
        if made is not None and len(made[1]) == 1 and made[1][0].dtype == np.float32:
            bases.append((case.name, made[0], made[1][0]))
    for number in range(first, first + count):
        rng = np.random.default_rng([seed, number])
        name, base, data = bases[int(rng.integers(len(bases)))]
        model = onnx.ModelProto.FromString(base.SerializeToString())
        changes = tuple(_mutated(model, rng) for _ in range(int(rng.integers(1, 4))))
        for output in model.graph.output:
            output.type.tensor_type.ClearField("shape")
        yield _outcome(number, name, changes, model, data, interpret)


def _outcome(
    number: int,
    name: str,
    changes: tuple[str, ...],
    model: Any,
    data: Any,
    interpret: Callable[..., Any],
) -> Mutant:
    def mutant(result: str, reason: str = "") -> Mutant:
        return Mutant(number, name, changes, result, reason)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant.onnx"
        path.write_bytes(model.SerializeToString())
        try:
            loaded = htvm.load(path)
            cast = data.astype(loaded.inputs[0].dtype)
            with np.errstate(all="ignore"):
                found = interpret(loaded.module, [cast]).outputs
        except Exception as error:  # noqa: BLE001
            return mutant(*failure(error))
    if (cast != data).any():
        return mutant("without oracle", "it takes integers")
    from onnx.reference import ReferenceEvaluator

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            wanted = ReferenceEvaluator(model).run(None, {model.graph.input[0].name: data})
    except Exception as error:  # noqa: BLE001
        return mutant("without oracle", f"{type(error).__name__}: {error}")
    reason = _difference(found, wanted)
    if reason and not _difference(found, _second(model, data)):
        return mutant("passed")  # the reference is the one that is wrong
    return mutant("wrong", reason) if reason else mutant("passed")


def _difference(found: Any, wanted: Any) -> str:
    """Return how results differ, empty if they do not."""
    if wanted is None:
        return "no second oracle"
    for got, expected in zip(found, wanted, strict=False):
        if got.shape != np.shape(expected):
            return f"shape {got.shape} for {np.shape(expected)}"
        if not np.allclose(got, expected, rtol=2e-3, atol=1e-5, equal_nan=True):
            return "other values"
    return ""


def _second(model: Any, data: Any) -> Any:
    """Return what onnxruntime computes, which the reference is at times less right than."""
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return session.run(None, {model.graph.input[0].name: data})
    except Exception:  # noqa: BLE001
        return None


# ------------------------------------------------------------------------------ changes


def _mutated(model: Any, rng: np.random.Generator) -> str:
    """Change the model's node or one of its constants; return what has been changed."""
    node = model.graph.node[0]
    way = int(rng.integers(5))
    if way == 0 and len(node.input) > 1:
        at = int(rng.integers(1, len(node.input)))
        node.input[at] = ""
        return f"input {at} dropped"
    if way == 1:
        name = f"extra{len(node.input)}"
        value = np.asarray(rng.integers(0, 3, int(rng.integers(1, 4))))
        value = value.astype([np.float32, np.int64][int(rng.integers(2))])
        model.graph.initializer.append(numpy_helper.from_array(value, name))
        node.input.append(name)
        return f"input {len(node.input) - 1} added"
    if way == 2 and len(model.graph.initializer):
        return _constant(model, rng)
    if way == 3 and len(node.attribute):
        at = int(rng.integers(len(node.attribute)))
        name = node.attribute[at].name
        del node.attribute[at]
        return f"attribute {name} removed"
    return _attribute(node, rng)


def _attribute(node: Any, rng: np.random.Generator) -> str:
    names = sorted({
        attribute
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.name == node.op_type and not schema.domain
        for attribute in schema.attributes
    }) or ["strange"]  # fmt: skip
    name = names[int(rng.integers(len(names)))]
    old = [item for item in node.attribute if item.name == name]
    value: Any = int(rng.integers(-2, 4))
    if old:
        held = helper.get_attribute_value(old[0])
        if isinstance(held, bytes):
            value = _TEXTS[int(rng.integers(len(_TEXTS)))]
        elif isinstance(held, float):
            value = float(rng.normal())
        elif isinstance(held, list) and held:
            held[int(rng.integers(len(held)))] += int(rng.integers(-1, 3))
            value = held
        node.attribute.remove(old[0])
    else:
        schema = onnx.defs.get_schema(node.op_type)
        kind = schema.attributes[name].type.name if name in schema.attributes else "INT"
        if kind == "FLOAT":
            value = float(rng.normal())
        elif kind == "STRING":
            value = _TEXTS[int(rng.integers(len(_TEXTS)))]
        elif kind == "INTS":
            value = [int(item) for item in rng.integers(0, 3, int(rng.integers(1, 5)))]
        elif kind != "INT":
            name = "strange"
    node.attribute.append(helper.make_attribute(name, value))
    return f"attribute {name} = {value}"


def _constant(model: Any, rng: np.random.Generator) -> str:
    at = int(rng.integers(len(model.graph.initializer)))
    tensor = model.graph.initializer[at]
    value, name = numpy_helper.to_array(tensor), tensor.name
    types = (np.float32, np.float64, np.int64, np.int32, np.int8, np.uint8, np.float16)
    if rng.integers(2) or not value.size:
        dtype = types[int(rng.integers(len(types)))]
        with np.errstate(all="ignore"):
            changed = value.astype(dtype)
        what = f"constant {name} as {np.dtype(dtype).name}"
    elif rng.integers(2):
        changed = value.reshape(1, *value.shape)
        what = f"constant {name} with another axis"
    else:
        flat = value.copy().reshape(-1)
        flat[int(rng.integers(flat.size))] += np.asarray(rng.integers(-2, 3)).astype(flat.dtype)
        changed, what = flat.reshape(value.shape), f"an element of constant {name}"
    tensor.CopyFrom(numpy_helper.from_array(np.asarray(changed, order="C"), name))
    return what


# ------------------------------------------------------------------------------ page


SEED, COUNT, BLOCK = 17, 5_000, 500
"""Of the committed page: its seed, its mutants of each kind, and how many of them are a row."""
_RESULTS = ("passed", "refused", "without oracle", "wrong", "crashed")
_TITLES = {
    "onnx": "ONNX nodes, against the reference implementation of the package onnx and onnxruntime",
    "tflite": "TFLite operators, against TFLite Micro's reference kernels",
    "bytes": "bytes of both kinds of files, changed or cut off",
    "built": "TFLite layers built for accelerators, against the bounds of their activations and "
    "the integer form that was built",
}


@dataclass
class Count:
    """How many mutants had which result, the bad ones, and the longest time of one in seconds."""

    results: Counter[str] = field(default_factory=Counter)
    bad: list[Mutant] = field(default_factory=list)
    longest: float = 0.0
    each: list[str] = field(default_factory=list)

    def block(self, first: int) -> list[str]:
        """Return the results of a row of `made_of`."""
        return self.each[first : first + BLOCK]


def campaign_of(kind: str, count: int, seed: int, first: int = 0) -> Iterator[Mutant]:
    """Yield the outcome of each mutant of a kind (one of the page's rows)."""
    from tests.reference.interpreter import interpret

    if kind == "onnx":
        return campaign(count, seed, interpret, first)
    if kind == "tflite":
        return tflite_mutations.campaign(count, seed, interpret, first)
    if kind == "built":
        return built_mutations.campaign(count, seed, interpret, first)
    return damage.campaign(count, seed, first)


def drawn_of(kind: str, count: int) -> int:
    """Return how many mutants of a kind are drawn: builds take longer than what is read only."""
    return count * 2 // 5 if kind == "built" else count


def _results(kind: str, first: int) -> list[str]:
    logging.disable(logging.WARNING)
    try:
        return [mutant.result for mutant in campaign_of(kind, BLOCK, SEED, first)]
    finally:
        logging.disable(logging.NOTSET)


def made_of(results: Callable[[str, int], list[str]] = _results) -> Iterator[RowSource]:
    """What became of the mutants of the committed page, from a number of a kind on."""
    for kind in _TITLES:
        needs = {"onnx": "onnxruntime", "tflite": "tflite_micro"}.get(kind)
        for first in range(0, drawn_of(kind, COUNT), BLOCK):
            name = f"{kind} {first} to {first + BLOCK - 1}"
            yield computed(name, partial(results, kind, first), needs)


def counted(mutants: Iterator[Mutant]) -> Count:
    """Run a campaign to its end; the times are of this process alone."""
    found, before = Count(), 0.0
    for mutant in mutants:
        now = time.process_time()
        # The time until the first one made the files that are changed.
        found.longest = max(found.longest, now - before if before else 0.0)
        before = now
        found.results[mutant.result] += 1
        found.each.append(mutant.result)
        if mutant.result in ("wrong", "crashed"):
            found.bad.append(mutant)
            sys.stdout.write(_line(mutant) + "\n")
            sys.stdout.flush()
    return found


def _line(mutant: Mutant) -> str:
    return (
        f"{mutant.result}: {mutant.number} {mutant.case} ({'; '.join(mutant.changes)}): "
        f"{' '.join(mutant.reason.split())[:200]}"
    )


def page(found: Mapping[str, Count], seed: int) -> str:
    """Return the page in Markdown.

    Args:
        found: what came out of each kind of campaign.
        seed: what the mutants were drawn from.
    """
    lines = [
        "# Mutated files",
        "",
        "Files that no exporter wrote: single operators with one to three changes, drawn from a "
        "seed. An optional input is dropped or added, an attribute or option is set, removed or "
        "replaced, the type, shape, scale, zero point or an element of a tensor is changed; or "
        "bytes of the file are. What is still read must be right, everything else must be refused. "
        f"`python -m benchmarks.mutations --seed {seed} --write docs/mutations.md` writes this "
        "page, tests run a part of it with another seed.",
        "",
        "- *passed*: equal to the oracle, reals within a tolerance.",
        "- *without oracle*: read, but the oracle refuses the file or ends its process; of changed "
        "bytes, all files that are read.",
        "- *longest*: processor time that reading and computing one mutant took.",
        "",
        "| mutants of | " + " | ".join(_RESULTS) + " | longest |",
        "|---|" + "--:|" * (len(_RESULTS) + 1),
    ]
    for kind, count in found.items():
        cells = " | ".join(f"{count.results[result]:,}" for result in _RESULTS)
        lines.append(f"| {_TITLES[kind]} | {cells} | {count.longest:.1f} s |")
    total = sum(sum(count.results.values()) for count in found.values())
    bad = [mutant for count in found.values() for mutant in count.bad]
    lines += ["", f"Of {total:,} mutants, {len(bad)} are wrong or crash."]
    lines += [f"- {_line(mutant)}" for mutant in bad]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the campaigns; print the counts, and every mutant that is wrong or crashes."""
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", choices=list(_TITLES))
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help="file for the page")
    arguments = parser.parse_args()
    count, seed = arguments.count, arguments.seed
    found = {}
    for kind in [arguments.of] if arguments.of else list(_TITLES):
        before = time.process_time()
        found[kind] = counted(campaign_of(kind, drawn_of(kind, count), seed))
        results = sorted(found[kind].results.items())
        seconds = f" in {time.process_time() - before:.0f} s of processor time"
        counts = ", ".join(f"{n} {result}" for result, n in results)
        sys.stdout.write(f"{kind}: {counts}{seconds}\n")
        sys.stdout.flush()
    if arguments.write is not None:
        arguments.write.write_text(page(found, seed), encoding="utf-8")
        if (count, seed, list(found)) == (COUNT, SEED, list(_TITLES)):
            record("mutations", made_of(lambda kind, first: found[kind].block(first)))


if __name__ == "__main__":
    main()
