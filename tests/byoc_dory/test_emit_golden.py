"""The generated C of the digital core, as text: what changes here is meant to change.

The other kinds of C are kept by tests/generated.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA
from tests.byoc_dory.layers import OPS, random_layer
from tests.byoc_dory.plans import plan_of
from tests.byoc_dory.program import region_of, sources
from tests.byoc_dory.test_emit_native import residual_region
from tests.generated.golden import check_golden

ROOT = Path(__file__).parents[2]


def kernels(options: TilingOptions) -> str:
    code = generate(residual_region(), Cost(DIANA, options), "net")
    return "\n".join(kernel.source for kernel in code.kernels)


def test_published(update_golden: bool) -> None:
    options = TilingOptions(l1_budget=2_600, schedule="published")
    check_golden("byoc_dory/published.c", kernels(options), update_golden)


def test_overlapped_and_alone(update_golden: bool) -> None:
    """Each layer by itself: untiled, tiled with one buffer, and tiled with two."""
    core = DIANA.accelerator("digital")
    parts = []
    for number, layer in enumerate(residual_region().layers):
        for budget, buffers in ((None, 1), (2_600, 1), (2_600, 2)):
            options = TilingOptions(l1_budget=budget, schedule="overlapped")
            plan = plan_of(layer, Cost(DIANA, options).best_tile(core, layer), buffers)
            symbol = f"net_{number}_{buffers if budget else 'whole'}"
            parts.append(core.emitter(DIANA).layer(layer, plan, options, symbol).source)
    check_golden("byoc_dory/overlapped.c", "\n".join(parts), update_golden)


DIGEST = """
import hashlib
from tests.byoc_dory.test_emit_golden import everything
print(hashlib.sha256(everything().encode()).hexdigest())
"""


def everything() -> str:
    """Sources and constants of several regions."""
    codes = [generate(residual_region(), Cost(DIANA, TilingOptions(l1_budget=3_000)), "net")]
    for number, op in enumerate(OPS):
        layer = random_layer(np.random.default_rng(number), op, f"l{number}")
        options = TilingOptions(l1_budget=40_000, objective="none")
        codes.append(generate(region_of(layer, "r", "NHWC"), Cost(DIANA, options), f"p{number}"))
    return sources(codes)


def test_same_bytes_from_another_process_and_folder(tmp_path: Path) -> None:
    digests = set()
    for folder, seed in ((ROOT, "1"), (tmp_path, "2")):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1 and len(digests.pop()) == 64
