"""Layers: the computations that accelerators can be given, with exact shapes.

`Layer` is the common base; each kind is a class in a file of its own.
"""

from byoc_dory.layers.add import Add, add_layer
from byoc_dory.layers.attend import Attend, attend_layer
from byoc_dory.layers.attention import (
    Attention,
    MultiHeadAttention,
    Projection,
    Scores,
    mha_layer,
)
from byoc_dory.layers.cached_attention import (
    AttentionOperands,
    CachedAttention,
    Weighing,
    cached_attention_layer,
)
from byoc_dory.layers.combination import Combination, combination_layer
from byoc_dory.layers.convolution import Convolution, conv2d_layer, depthwise_layer
from byoc_dory.layers.dense import Dense, dense_layer
from byoc_dory.layers.gemm import Gemm, gemm_layer
from byoc_dory.layers.layer import INT8, Layer
from byoc_dory.layers.matmul import Matmul, matmul_layer
from byoc_dory.layers.requantization import (
    AnalogRequant,
    MulShift,
    OnnxRequant,
    Requant,
    Shift,
    TfliteRequant,
)
from byoc_dory.layers.rows import Rows, rows_layer
from byoc_dory.layers.tensor import Array, Layout, Tensor, matrix
from byoc_dory.layers.weighted import Weighted

__all__ = [
    "INT8",
    "Add",
    "AnalogRequant",
    "Array",
    "Attend",
    "Attention",
    "AttentionOperands",
    "CachedAttention",
    "Combination",
    "Convolution",
    "Dense",
    "Gemm",
    "Layer",
    "Layout",
    "Matmul",
    "MulShift",
    "MultiHeadAttention",
    "OnnxRequant",
    "Projection",
    "Requant",
    "Rows",
    "Scores",
    "Shift",
    "Tensor",
    "TfliteRequant",
    "Weighing",
    "Weighted",
    "add_layer",
    "attend_layer",
    "cached_attention_layer",
    "combination_layer",
    "conv2d_layer",
    "dense_layer",
    "depthwise_layer",
    "gemm_layer",
    "matmul_layer",
    "matrix",
    "mha_layer",
    "rows_layer",
]
