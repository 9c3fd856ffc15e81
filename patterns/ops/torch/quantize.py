"""Conversion of float32 to 8 bits as torch's ``quantize_per_tensor``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from byoc_dory.layers import Array
from patterns.op import operator
from patterns.ops.onnxruntime.rounding import OnnxQuantize


@operator
@dataclass(frozen=True, eq=False)
class TorchQuantize(OnnxQuantize):
    """``rint(x * (1 / step)) + zero_point``, ties to even, saturated; a NaN gives the upper end.

    The reciprocal is taken in double precision and rounded to float32.

    Attributes:
        step: scale of the output, as the program holds it, in double precision.
        zero_point, dtype: as in `patterns.ops.float32.quantize.Quantize`.
    """

    tag = "torch_quantize"

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the reciprocal of the scale."""
        return {"scale": np.asarray([1.0 / self.step], "float32")}

    def ratio(self, x: Any, step: Any) -> Any:
        return x * step
