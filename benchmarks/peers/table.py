"""The page on peers: one table of properties, one for each file, versions beside."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.peers.answer import Answer, Case, Peer, Survey

__all__ = ["page"]

_HEAD = """# Peers

Other compilers and runtimes that can be installed from the package index, on the same files: which
of them read a file, whether the output is equal to the oracle's, how large what they make is, how
long they take. `make peers` installs each in an environment of its own, asks it, and writes this
page. Seconds are of one inference on the machine that wrote the page, on one thread. Sizes are of
different things, as the last column says.

Of those that make C for any core, and of this project, one inference runs on an emulated Cortex-M4:
instructions, flash, and RAM with stack, inputs and outputs, by GCC with `-O2`, floating point in
software. [Beside TFLite Micro with CMSIS-NN](tflm.md) has the four TFLite files on such cores by
Arm's kernels, which ExecuTorch's operators for Cortex-M call, too. heliaAOT's licence allows what
it generates on Ambiq's chips only.

The oracle of a TFLite file is TFLite Micro with its reference kernels; the oracle of the ONNX file
(the digits network, as onnxruntime quantizes it) is onnxruntime. Ours is the first row, with what
is worse than another's marked by `*`.
"""


def page(peers: Sequence[Peer], cases: Sequence[Case], surveys: Sequence[Survey]) -> str:
    """Return the page as Markdown."""
    found = {survey.peer: survey for survey in surveys}
    known = [peer for peer in peers if peer.name in found]
    parts = [_HEAD, _overview(known, cases, found)]
    parts += [_of_case(case, known, found) for case in cases]
    return "\n".join(parts)


def _overview(peers: Sequence[Peer], cases: Sequence[Case], found: dict[str, Survey]) -> str:
    lines = [
        "## Who reads what",
        "",
        "| | makes | " + " | ".join(case.name for case in cases) + " | versions | note |",
        "|---|---|" + "---|" * len(cases) + "---|---|",
    ]
    for peer in peers:
        survey = found[peer.name]
        cells = [_reads(survey, case) for case in cases]
        note = f"not installed: {survey.failure}" if survey.failure else peer.note
        cells = [peer.title, peer.makes, *cells, ", ".join(survey.versions), note]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def _reads(survey: Survey, case: Case) -> str:
    answer = survey.answers.get(case.name)
    return "" if answer is None else "yes" if answer.reads else "no"


def _of_case(case: Case, peers: Sequence[Peer], found: dict[str, Survey]) -> str:
    lines = [
        f"## {case.name}",
        "",
        f"| {case.kind} | equal to {case.oracle} | largest difference | code B | data B | RAM B "
        "| compile s | host ms | M4 instructions | M4 flash B | M4 RAM B | sizes of, or why not |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    answers = {p.name: found[p.name].answers.get(case.name) for p in peers}
    ours = answers.get("htvm")
    for peer in peers:
        answer = answers[peer.name]
        if answer is not None:
            others = [a for a in answers.values() if a is not None] if answer is ours else []
            lines.append(f"| {peer.title} | " + " | ".join(_cells(answer, others)) + " |")
    return "\n".join([*lines, ""])


def _cells(answer: Answer, others: Sequence[Answer]) -> list[str]:
    def number(name: str, shown: str, factor: float = 1) -> str:
        value = getattr(answer, name)
        if value is None:
            return ""
        values = [getattr(other, name) for other in others]
        worse = any(other is not None and other < value for other in values)
        return shown.format(factor * value) + (" *" if worse else "")

    equal = ""
    if answer.equal is not None and answer.elements:
        equal = f"{answer.equal:,} of {answer.elements:,}"
    words = [word for word in (answer.size_of, answer.reason) if word]
    return [
        equal,
        "" if answer.largest is None else f"{answer.largest:.4g}",
        number("code_bytes", "{:,.0f}"),
        number("data_bytes", "{:,.0f}"),
        number("ram_bytes", "{:,.0f}"),
        number("compile_seconds", "{:.2f}"),
        number("host_seconds", "{:.3f}", 1000),
        number("core_instructions", "{:,.0f}"),
        number("core_flash", "{:,.0f}"),
        number("core_ram", "{:,.0f}"),
        "; ".join(words).replace("|", "/"),
    ]
