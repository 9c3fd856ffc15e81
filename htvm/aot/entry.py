"""C of a :class:`~htvm.aot.program.Program`: entry function, kernels, constants.

The texts depend only on the program, and numbers are printed in only one way, so equal programs
give equal bytes on every machine.
"""

from __future__ import annotations

import re
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from byoc_dory.memory.arena import written_over
from byoc_dory.plain import code_span, markdown
from byoc_dory.region import Constant
from htvm.aot.interface import ArenaType, described_tensors, passed_types
from htvm.aot.literals import NEEDS_MATH, STRING_BYTES, c_array, c_string, c_type
from htvm.aot.program import Program, Step, StepOperand
from htvm.aot.steps import Provenance

_WIDTH = 100
_NATIVE_HEADER = "htvm_native.h"  # of what native kernels call


def _comment(text: str) -> str:
    """Make text harmless inside a C comment."""
    plain = re.sub(r"[^\x20-\x7e]|\\|\?\?", "?", text)
    return plain.replace("*/", "* /").replace("/*", "/ *")


def _wrap(text: str, indent: str) -> str:
    """Break a C expression at spaces, continuing under ``indent``."""
    lines = textwrap.wrap(
        text, _WIDTH - len(indent) - 4, break_long_words=False, break_on_hyphens=False
    )
    return ("\n" + indent).join(lines)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters.update(
        comment=_comment,
        markdown=markdown,
        code_span=code_span,
        wrap=_wrap,
        append=lambda text, tail: text + tail,
        surround=lambda text, head, tail: head + text + tail,
    )
    return environment


def render(template: str, **fields: Any) -> str:
    """Fill in a template of this package; a missing field is an error."""
    return _environment().get_template(template).render(**fields)


def _argument(operand: StepOperand, declared: str, parameter: str) -> str:
    """Return an argument, with a cast if the kernel's parameter has a less strict type.

    Kernels printed by TVM take ``int8_t *`` even for data that they only read.
    """
    if declared == parameter:
        return operand.name
    const, base = declared.startswith("const "), declared.removeprefix("const ")
    fits = parameter.removeprefix("const ") in (base, "void *")
    if fits and (parameter.startswith("const ") or not const):
        return operand.name
    return f"({parameter}){operand.name}"


class _Calls:
    """Prints steps; knows the C types of operands and parameters."""

    def __init__(self, program: Program) -> None:
        inputs, outputs = described_tensors(program)
        self._declared = {tensor["parameter"]: f"const {tensor['type']} *" for tensor in inputs}
        self._declared |= {tensor["parameter"]: f"{tensor['type']} *" for tensor in outputs}
        for constant in program.constants:
            self._declared[constant.name] = f"const {c_type(constant.data.dtype.name)} *"
        self._passed = passed_types(program)
        self.arena = ArenaType(program, self._passed)
        self._declared |= {name: f"{each} *" for name, each in self.arena.elements.items()}

    def text(self, index: int, step: Step) -> str:
        """The C expression of a step, given its number.

        It returns a code or nothing (`Step.returns_code`).
        """
        if step.kind == "copy":
            source, target = step.args
            return f"copy({source.name}, {target.name}, {step.bytes}u)"
        arguments = [
            _argument(operand, self._declared[operand.name], parameter)
            for operand, parameter in zip(step.args, self._passed[index], strict=True)
        ]
        arguments += [value for _, value in step.values]
        return f"{step.function}({', '.join(arguments)})"


def place(step: Step) -> str:
    """Return the unit that performs a step; conversions for an accelerator are the host's work."""
    if step.kind in ("cpu", "layer"):
        return step.accelerator
    return f"cpu, {step.kind}"


def _step_comment(index: int, step: Step) -> str:
    numbers = []
    if step.macs:
        numbers.append(f"{step.macs} MAC")
    if step.predicted_cycles:
        numbers.append(f"{step.predicted_cycles} cycles predicted")
    tail = "; " + ", ".join(numbers) if numbers else ""
    return f"{index}: {step.layer} [{place(step)}] {step.comment}{tail}"


def _passed(step: Step) -> str:
    """What a shared function is passed after the tensors, in this order."""
    return f"passed: {', '.join(name for name, _ in step.values)}" if step.values else ""


def origin_lines(origin: Provenance | None) -> str:
    """Return the provenance for the comment at a file's head, each line after a newline."""
    if origin is None:
        return ""
    source = "a Relax module" if origin.source == "IRModule" else _comment(origin.source)
    return f"\n * Generated by HTVM {origin.version} from {source},\n * SHA-256 {origin.sha256}."


def _life(first: int, last: int) -> str:
    return f"step {first}" if first == last else f"steps {first} to {last}"


def template_fields(program: Program) -> dict[str, Any]:
    """Return the fields that all templates share: names, tensors, buffers, steps, constants."""
    inputs, outputs = described_tensors(program)
    parameters = [f"const {tensor['type']} *{tensor['parameter']}" for tensor in inputs]
    parameters += [f"{tensor['type']} *{tensor['parameter']}" for tensor in outputs]
    plan = program.plan
    over = written_over(plan, program.buffers)
    proof = "no smaller one exists" if plan.optimal else f"at least {plan.bound} are needed"
    calls = _Calls(program)
    sizes_of = {use.name: use.bytes for use in program.buffers}
    sizes = [np.dtype(info.dtype).itemsize for info in (*program.inputs, *program.outputs)]
    return {
        "name": program.name,
        "origin": origin_lines(program.origin),
        "conversions": True,  # whether the header has them
        "NAME": program.name.upper(),
        "inputs": inputs,
        "outputs": outputs,
        "pointers": [tensor["parameter"] for tensor in inputs + outputs],
        "placed": [tensor for tensor in inputs if tensor["place"]],
        "overwritten": [
            {
                **tensor,
                "ctype": tensor["type"],
                "bytes": sizes_of[tensor["buffer"]],
                **calls.arena.place(tensor["buffer"]),
            }
            for tensor in inputs
            if tensor["buffer"]
        ],
        "streamed": program.streamed,
        # Rows are copied from any address.
        "aligned": [tensor["parameter"] for tensor in inputs + outputs if not tensor["row"]],
        "required": [
            tensor["parameter"]
            for tensor in inputs + outputs
            if not tensor["place"] and not tensor["buffer"]
        ],
        "parameters": ", ".join(parameters),
        # Layout conversions move words, and the DMA addresses them.
        "tensor_align": max([4, *sizes]),
        "arena_bytes": plan.peak,
        "arena_comment": proof,
        "arena_members": calls.arena.members,
        "stack_bytes": program.stack_bytes,
        "constant_bytes": program.constant_bytes,
        "constants": [_constant(constant) for constant in program.constants],
        "buffers": [
            {
                "name": use.name,
                "bytes": use.bytes,
                **calls.arena.place(use.name),
                "life": _life(use.first, use.last),
                # Whose bytes its first step reads before it writes there.
                "over": over.get(use.name, ""),
            }
            for use in program.buffers
        ],
        "copies": any(step.kind == "copy" for step in program.steps) or bool(program.overwritten),
        "steps": [
            {
                "index": index,
                "comment": _step_comment(index, step),
                "passed": _passed(step),
                "call": calls.text(index, step),
                "returns_code": step.returns_code and step.kind != "copy",
            }
            for index, step in enumerate(program.steps)
        ],
        "ready": [step.ready for step in program.steps if step.ready],
        "prototypes": program.prototypes,
    }


def _constant(constant: Constant) -> dict[str, Any]:
    return {
        "name": constant.name,
        "type": c_type(constant.data.dtype.name),
        "elements": int(constant.data.size),
        "align": constant.align,
        "memory": constant.memory,
        "elsewhere": constant.elsewhere,
        "comment": f"{constant.comment or constant.name}, {constant.data.nbytes} B",
        "data": constant.data,
    }


def model_sources(
    program: Program, *, strings: bool = False, native: bool = False
) -> dict[str, str]:
    """Return the C files of a model: file name to text.

    With ``strings``, large constants of bytes are strings: the same values, for compilers only.
    With ``native``, kernels that have another form for programs of this machine have that one.

    ``<name>.h`` and ``<name>.c`` (interface and entry), ``<name>_kernels.h`` (prototypes),
    ``<name>_layers.c`` (accelerator layers), ``<name>_cpu.c`` (TVM's kernels),
    ``<name>_weights.h`` and ``.c`` (constants); files that would be empty are left out.

    Raises:
        UnsupportedError: a dtype has no C counterpart.
    """
    if program.files is not None:
        return dict(program.files)
    fields = template_fields(program)
    name = program.name
    files = {
        f"{name}.h": render("model.h.jinja", **fields),
        f"{name}.c": render("model.c.jinja", **fields),
        f"{name}_kernels.h": render("kernels.h.jinja", **fields),
    }
    kernels = {**fields, "source": program.layers_source.strip(), "headers": program.headers}
    kernels["floats"] = False  # whether there are kernels that compute in reals
    kernels["math"] = False  # whether there are kernels that call mathematical functions
    if program.layers_source.strip():
        title = "layers on accelerators, and conversion between layouts"
        files[f"{name}_layers.c"] = render("kernels.c.jinja", **kernels, title=title)
    if program.cpu_source.strip():
        kernels |= {"source": program.cpu_source.strip(), "headers": program.cpu_headers}
        if native and program.native_source:
            headers = (*program.cpu_headers, _NATIVE_HEADER)
            kernels |= {"source": program.native_source.strip(), "headers": headers}
        kernels["floats"] = re.search(r"\b(float|double)\b", program.cpu_source) is not None
        kernels["math"] = NEEDS_MATH.search(program.cpu_source) is not None
        files[f"{name}_cpu.c"] = render("kernels.c.jinja", **kernels, title="kernels for the CPU")
    if program.constants:
        defined = [each for each in fields["constants"] if not each["elsewhere"]]
        for constant in defined:
            data = constant["data"]
            string = strings and data.itemsize == 1 and data.size >= STRING_BYTES
            constant["text"] = c_string(data) if string else f"{{\n{c_array(data)}\n}}"
        files[f"{name}_weights.h"] = render("weights.h.jinja", **fields)
        if defined:
            files[f"{name}_weights.c"] = render("weights.c.jinja", **fields)
    return files
