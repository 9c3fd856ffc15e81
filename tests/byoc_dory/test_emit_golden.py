"""The generated C, as text: what changes here is meant to change.

After an intended change: pytest tests/byoc_dory --update-golden, then read the diff.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.codegen import generate
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA
from tests.byoc_dory.layers import OPS, random_layer
from tests.byoc_dory.program import region_of, sources
from tests.byoc_dory.test_emit_native import residual_region

GOLDEN = Path(__file__).parents[1] / "golden" / "byoc_dory"
ROOT = Path(__file__).parents[2]


def check(name: str, text: str, update: bool) -> None:
    path = GOLDEN / f"{name}.c"
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.is_file(), f"{path} is missing: run with --update-golden"
    assert text == path.read_text(encoding="utf-8")


def kernels(budget: int | None) -> str:
    code = generate(residual_region(), DIANA, TilingOptions(l1_budget=budget), "net")
    return "\n".join(kernel.source for kernel in code.kernels)


@pytest.mark.parametrize(("name", "budget"), [("whole", None), ("tiled", 2_600)])
def test_region(name: str, budget: int | None, update_golden: bool) -> None:
    check(name, kernels(budget), update_golden)


DIGEST = """
import hashlib
from tests.byoc_dory.test_emit_golden import everything
print(hashlib.sha256(everything().encode()).hexdigest())
"""


def everything() -> str:
    """Sources and constants of several regions."""
    codes = [generate(residual_region(), DIANA, TilingOptions(l1_budget=3_000), "net")]
    for number, op in enumerate(OPS):
        layer = random_layer(np.random.default_rng(number), op, f"l{number}")
        options = TilingOptions(l1_budget=40_000, objective="none")
        codes.append(generate(region_of(layer, "r", "NHWC"), DIANA, options, f"p{number}"))
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
