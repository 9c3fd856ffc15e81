"""ZigZag on every layer and array: C and K unrolled over the PEs, the quickest loops it finds.

A program for ZigZag's environment: ``probe.py ASKED.json``, with ``layers``, ``designs``, ``sram``
and ``dma_bytes``; prints ``[[[ideal, stalls, onloading, offloading] of each layer] of each
design]`` as the last line.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml


def _memory(size: int, operands: str, ports: list[dict[str, Any]], shared: bool) -> dict[str, Any]:
    return {
        "size": size, "r_cost": 0, "w_cost": 0, "area": 0, "latency": 1,
        "operands": operands.split(), "ports": ports,
        "served_dimensions": ["D1", "D2"] if shared else [],
    }  # fmt: skip


def _port(name: str, kind: str, width: tuple[int, int], uses: str) -> dict[str, Any]:
    return {
        "name": name, "type": kind, "bandwidth_min": width[0], "bandwidth_max": width[1],
        "allocation": [f"{use[:-3]}, {use[-2:]}" for use in uses.split()],
    }  # fmt: skip


def _hardware(design: list[int], sram: int, dma_bytes: int) -> dict[str, Any]:
    """Return an array with one weight and one sum per PE, an SRAM of any width, and the DMA."""
    wide, byte, word = (8, 1 << 20), (8, 8), (32, 32)
    reads, writes = "I1.tl I2.tl O.tl O.th", "I1.fh I2.fh O.fh O.fl"
    memories = {
        "rf_w": _memory(16, "I2", [_port("r_port_1", "read", byte, "I2.tl"),
                                   _port("w_port_1", "write", byte, "I2.fh")], False),
        "rf_o": _memory(64, "O", [_port("r_port_1", "read", word, "O.tl"),
                                  _port("r_port_2", "read", word, "O.th"),
                                  _port("w_port_1", "write", word, "O.fh"),
                                  _port("w_port_2", "write", word, "O.fl")], False),
        "sram": _memory(8 * sram, "I1 I2 O", [_port("r_port_1", "read", wide, reads),
                                              _port("w_port_1", "write", wide, writes)], True),
        "dram": _memory(10**10, "I1 I2 O", [_port("rw_port_1", "read_write", (8, 8 * dma_bytes),
                                                  f"{writes} {reads}")], True),
    }  # fmt: skip
    array = {"unit_energy": 0, "unit_area": 1, "dimensions": ["D1", "D2"], "sizes": design}
    return {"name": "array", "memories": memories, "operational_array": array}


def _workload(layer: dict[str, Any]) -> list[dict[str, Any]]:
    step = layer["stride"]
    return [{
        "id": 0, "name": "layer", "operator_type": "Conv",
        "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
        "dimension_relations": [f"ix={step}*ox+1*fx", f"iy={step}*oy+1*fy"],
        "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"],
        "loop_sizes": [1, layer["K"], layer["C"], layer["oy"], layer["ox"], layer["f"], layer["f"]],
        "operand_precision": {"W": 8, "I": 8, "O": 32, "O_final": 8},
        "operand_source": {"I": 0, "W": 0},
    }]  # fmt: skip


def cycles(layer: dict[str, Any], design: list[int], asked: dict[str, Any]) -> list[float]:
    """Return the cycles of one layer: ideal, stalls, onloading, offloading."""
    from zigzag.api import get_hardware_performance_zigzag

    mapping = [{
        "name": "default",
        "spatial_mapping": {"D1": [f"C, {design[0]}"], "D2": [f"K, {design[1]}"]},
        "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"},
    }]  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        paths = [Path(name) / part for part in ("workload.yaml", "hardware.yaml", "mapping.yaml")]
        hardware = _hardware(design, asked["sram"], asked["dma_bytes"])
        for path, data in zip(paths, (_workload(layer), hardware, mapping), strict=True):
            path.write_text(yaml.safe_dump(data, sort_keys=False))
        found = get_hardware_performance_zigzag(
            *map(str, paths), opt="latency", dump_folder=f"{name}/out",
            pickle_filename=f"{name}/all.pickle", loma_show_progress_bar=False,
        )  # fmt: skip
    cost = found[2][0][0]
    return [
        cost.ideal_temporal_cycle,
        cost.latency_total0 - cost.ideal_temporal_cycle,
        cost.latency_total1 - cost.latency_total0,
        cost.latency_total2 - cost.latency_total1,
    ]


def main() -> None:
    asked = json.loads(Path(sys.argv[1]).read_text())
    with contextlib.redirect_stdout(sys.stderr):
        answer = [
            [cycles(layer, design, asked) for layer in asked["layers"]]
            for design in asked["designs"]
        ]
    print("\n" + json.dumps(answer))


main()
