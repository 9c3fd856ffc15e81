"""MobileNetV1 on the published designs of a parametrised accelerator, all bars of Fig. 4.

Sponner et al. (TinyML Research Symposium 2021) executed MobileNetV1 on an instruction-set simulator
in three scenarios: depthwise convolutions on the CPU, through OP_CONV one filter at a time
("emulated"), and with an instruction of their own ("native"); with 64 or 128 PEs, parallel over
input (I) or output channels (O), and SRAM of 512 KiB, 1 MiB (third scenario only) or 256 MiB.  Each
bar here is a program that ran: the command stream of every layer was executed, each region's result
is the reference's byte for byte, and the cycles are those of its instructions, in the paper's kinds
of subgraphs: CONV, REQUANT and DEPTH.  Transfers are not in the bars, as published; the dense layer
is left out.

The heights of the published bars are unknown: they are in a picture, not in the text.  What the
text says of them is T1 to T4 below.

*split* is the published pipeline: convolutions write int32, a second instruction requantizes.
*fused* requantizes in the convolution.  *model* is a formula that was derived from the text
beforehand: input-parallel oy ox ky kx ceil(C/P) K, output-parallel oy ox ky kx C sum ceil(K_t/P),
depthwise oy ox ky kx K (emulated) or sum ceil(K_t/P) (native), where a tile's results take one byte
each and all of the layer's input is in SRAM; no requantization.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.artefact import Artefact, main, write
from benchmarks.dla_runs import SCENARIOS, Ran, Workload, execute, workload
from benchmarks.made_of import RowSource, computed
from byoc_dory.soc.dla.design import DEPTHWISE, Design, array_of
from byoc_dory.soc.dla.region_file import LayerEntry, RegionFile
from htvm.progress import Progress
from htvm.tools.report.table import Column, Table, text

__all__ = ["Bar", "bars", "claims", "made_of", "run"]

NETWORK = "mobilenet_v1_224"
KINDS = ("CONV", "REQUANT", "DEPTH")
KIB = {"cpu": (512, 262_144), "emulated": (512, 262_144), "native": (512, 1024, 262_144)}
TITLES = {
    "cpu": "1: depthwise on the CPU",
    "emulated": "2: depthwise through OP_CONV",
    "native": "3: OP_DEPTH_CONV",
}

TABLE = (
    Column("scenario"),
    Column("design"),
    Column("CONV", number=True),
    Column("REQUANT", number=True),
    Column("DEPTH", number=True),
    Column("split", number=True),
    Column("PEs used", number=True),
    Column("fused", number=True),
    Column("model", number=True),
    Column("fused - model, CONV", number=True),
    Column("DEPTH", number=True),
    Column("layers tiled, split", number=True),
    Column("fused", number=True),
)


@dataclass(frozen=True)
class Bar:
    """One bar of Fig. 4, executed with split and with fused pipelines, beside the model."""

    depthwise: str
    kib: int
    pes: int
    parallel: str
    split: Ran
    fused: Ran
    model: dict[str, int]

    @property
    def label(self) -> str:
        """The design as the figure labels it: SRAM, PEs, I or O."""
        size = f"{self.kib} KiB" if self.kib < 1024 else f"{self.kib // 1024} MiB"
        return f"{size} {self.pes} {self.parallel[0].upper()}"

    def tiled(self, ran: Ran, work: Workload) -> list[str]:
        """Return the names of the layers that are tiled, without the dense one."""
        return [
            layer.name
            for (region, _), plan in zip(work.regions, ran.plans, strict=True)
            for layer, entry in zip(region.layers, plan.layers, strict=True)
            if entry.tile.k < region.result(layer).channels and layer.op != "dense"
        ]


def design_of(depthwise: str, kib: int, pes: int, parallel: str, *, fused: bool) -> Design:
    """Return a published design; nothing stays in SRAM between layers."""
    inputs, outputs = array_of(pes, parallel)
    return Design(
        pes_in=inputs,
        pes_out=outputs,
        sram=kib << 10,
        depthwise=DEPTHWISE.index(depthwise),
        fused=fused,
        resident=False,
    )


def modelled(work: Workload, design: Design) -> dict[str, int]:
    """Return the derived formula's cycles of CONV and DEPTH."""
    found = {"CONV": 0, "DEPTH": 0}
    for region, _ in work.regions:
        for layer in region.layers:
            if layer.op in ("conv", "depthwise"):
                kind = "DEPTH" if layer.op == "depthwise" else "CONV"
                found[kind] += _modelled(region, layer, design)
    return found


def _modelled(region: RegionFile, layer: LayerEntry, design: Design) -> int:
    source, result = region.source(layer), region.result(layer)
    k_all = result.channels
    room = design.sram - source.bytes
    each = result.rows * result.columns + region.channel_bytes(layer)
    k = max(1, min(k_all, room // each))
    tiles = [min(k, k_all - start) for start in range(0, k_all, k)]
    positions = result.rows * result.columns * layer.kernel[0] * layer.kernel[1]
    if layer.op == "depthwise":
        if design.emulated:
            return positions * k_all
        return positions * sum(-(-tile // design.pes) for tile in tiles)
    if design.pes_in > 1:
        return positions * -(-source.channels // design.pes_in) * k_all
    return positions * source.channels * sum(-(-tile // design.pes_out) for tile in tiles)


def bars(works: dict[str, Workload]) -> list[Bar]:
    """Execute all designs of the figure."""
    found = []
    for depthwise, work in works.items():
        for kib in KIB[depthwise]:
            for pes in (64, 128):
                for parallel in ("input", "output"):
                    split = design_of(depthwise, kib, pes, parallel, fused=False)
                    fused = design_of(depthwise, kib, pes, parallel, fused=True)
                    found.append(
                        Bar(
                            depthwise, kib, pes, parallel,
                            execute(work, split), execute(work, fused), modelled(work, fused),
                        )
                    )  # fmt: skip
    return found


def claims(found: list[Bar], *, fused: bool) -> list[tuple[str, str, bool]]:
    """Return what the paper's text says of the bars: (claim, figures, whether it holds here)."""

    def cycles(depthwise: str, kib: int, pes: int, parallel: str) -> float:
        bar = next(
            bar
            for bar in found
            if (bar.depthwise, bar.kib, bar.pes, bar.parallel) == (depthwise, kib, pes, parallel)
        )
        return (bar.fused if fused else bar.split).computing / 1e6

    big = 262_144
    untiled = [
        (cycles(d, big, pes, "output"), cycles(d, big, pes, "input"))
        for d in SCENARIOS
        for pes in (64, 128)
    ]
    small = [
        (cycles(d, 512, pes, "input"), cycles(d, 512, pes, "output"))
        for d in SCENARIOS
        for pes in (64, 128)
    ]
    third = (cycles("native", 1024, 128, "output"), cycles("native", big, 64, "output"))
    fourth = [
        (cycles("native", kib, pes, way), cycles("emulated", kib, pes, way))
        for kib in (512, big)
        for pes in (64, 128)
        for way in ("input", "output")
    ]

    def shown(pairs: list[tuple[float, float]]) -> str:
        return ", ".join(f"{low:.2f} < {high:.2f}" for low, high in pairs)

    def holds(pairs: list[tuple[float, float]]) -> bool:
        return all(low < high for low, high in pairs)

    return [
        ("T1 untiled, output-parallel < input-parallel", shown(untiled), holds(untiled)),
        ("T2 512 KiB, input-parallel < output-parallel", shown(small), holds(small)),
        ("T3 128 PEs with 1 MiB < 64 PEs with 256 MiB", shown([third]), holds([third])),
        ("T4 native << emulated", shown(fourth), holds(fourth)),
    ]


def made_of() -> Iterator[RowSource]:
    """The designs of each scenario, executed."""
    for depthwise in SCENARIOS:
        yield computed(f"{NETWORK}, depthwise={depthwise}", partial(_of_scenario, depthwise))


def _of_scenario(depthwise: str) -> list[Bar]:
    return bars({depthwise: workload(NETWORK, depthwise)})


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Execute MobileNetV1 on the published designs, and draw the bars of Fig. 4."""
    progress = progress or Progress()
    works = {}
    for depthwise in SCENARIOS:
        with progress.stage(f"compiling scenario {SCENARIOS[depthwise]}"):
            works[depthwise] = workload(NETWORK, depthwise)
    with progress.stage("executing designs"):
        found = bars(works)
    artefact = Artefact(
        "dla",
        "A parametrised accelerator: MobileNetV1 on the designs of Sponner et al., Fig. 4",
        "\n\n".join(
            [
                str(__doc__).strip(),
                "Million cycles",
                text(Table(TABLE, tuple(_row(bar, works[bar.depthwise]) for bar in found))),
                *_claims_text(found),
                _differences(found, works),
            ]
        ),
        [_record(bar, works[bar.depthwise]) for bar in found],
        {"dla": _figure(found)},
    )
    write(artefact, folder)
    return artefact


def _row(bar: Bar, work: Workload) -> tuple[str, ...]:
    split, fused, model = bar.split.segments(), bar.fused.segments(), bar.model
    return (
        TITLES[bar.depthwise],
        bar.label,
        *(f"{split[kind] / 1e6:.2f}" for kind in KINDS),
        f"{bar.split.computing / 1e6:.2f}",
        f"{100 * bar.split.utilisation(bar.pes):.0f} %",
        f"{bar.fused.computing / 1e6:.2f}",
        f"{sum(model.values()) / 1e6:.2f}",
        f"{(fused['CONV'] - model['CONV']) / 1e6:+.2f}",
        f"{(fused['DEPTH'] - model['DEPTH']) / 1e6:+.2f}",
        str(len(bar.tiled(bar.split, work))),
        str(len(bar.tiled(bar.fused, work))),
    )


def _claims_text(found: list[Bar]) -> list[str]:
    parts = []
    for fused in (False, True):
        lines = ["With fused pipelines:" if fused else "With split pipelines, as published:"]
        for claim, figures, true in claims(found, fused=fused):
            lines.append(f"  {claim}: {'holds' if true else 'DOES NOT HOLD'} ({figures})")
        parts.append("\n".join(lines))
    return parts


def _differences(found: list[Bar], works: dict[str, Workload]) -> str:
    """Explain what lies between executed programs and the model."""
    third = next(bar for bar in found if (bar.label, bar.depthwise) == ("1 MiB 128 O", "native"))
    work = works["native"]
    most = max(_ratio(bar) for bar in found)
    return f"""What lies between them:

* fused - model: CONV is equal.  DEPTH differs where SRAM is small: the model keeps the whole input
  of a depthwise layer in SRAM, ours the channels of the tile.  The input of 112x112x64 alone is
  802,816 B, so that it would not fit 512 KiB at all; the model computes one channel at a time then.
* split - fused: REQUANT is one cycle for each PE-wide group of elements; and int32 results take
  four bytes each, so that fewer output channels fit a tile, which costs output-parallel designs PEs
  (at 512 KiB up to {most:.1f} times the cycles), and input-parallel ones nothing in CONV.
* T3, "only the initial layers are tiled" at 1 MiB, is true of fused pipelines
  ({_named(third.tiled(third.fused, work))}; the weights of the last alone take 1 MiB), and of
  split ones less: {_named(third.tiled(third.split, work))}.
"""


def _ratio(bar: Bar) -> float:
    return bar.split.computing / bar.fused.computing


def _named(layers: list[str]) -> str:
    return ", ".join(layers) or "none"


def _record(bar: Bar, work: Workload) -> dict[str, Any]:
    return {
        "depthwise": bar.depthwise,
        "sram_kib": bar.kib,
        "pes": bar.pes,
        "parallel": bar.parallel,
        "model": bar.model,
        **{
            name: {
                **ran.segments(),
                "dma_cycles": ran.moving,
                "dma_bytes": ran.bytes,
                "utilisation": round(ran.utilisation(bar.pes), 4),
                "tiled": bar.tiled(ran, work),
            }
            for name, ran in (("split", bar.split), ("fused", bar.fused))
        },
    }


def _figure(found: list[Bar]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.5), layout="constrained")
    axes = figure.subplots(1, len(SCENARIOS), sharey=True)
    for axis, depthwise in zip(axes, SCENARIOS, strict=True):
        mine = [bar for bar in found if bar.depthwise == depthwise]
        labels = [bar.label for bar in mine]
        below = [0.0] * len(mine)
        for kind in KINDS:
            values = [bar.split.segments()[kind] / 1e6 for bar in mine]
            axis.bar(labels, values, bottom=below, label=f"{kind}, split")
            below = [low + value for low, value in zip(below, values, strict=True)]
        axis.plot(
            labels, [bar.fused.computing / 1e6 for bar in mine], "k_", markersize=14, label="fused"
        )
        axis.plot(labels, [sum(bar.model.values()) / 1e6 for bar in mine], "r.", label="model")
        axis.set_title(TITLES[depthwise], fontsize=10)
        axis.tick_params(axis="x", rotation=90)
    axes[0].set_ylabel("million cycles")
    axes[0].legend()
    return figure


if __name__ == "__main__":
    sys.exit(main(run))
