"""The networks that come with HTVM, where users import them: see `htvm.tools.zoo`."""

from __future__ import annotations

from htvm.tools.zoo import (
    DESCRIBED,
    SCHEMES,
    SEED_DIGITS,
    TRAINED,
    build,
    digits,
    ds_cnn,
    encoder,
    gemm,
    microllama,
    microllama_prompt,
    mobilenet_v1,
    mobilenet_v1_224,
    named,
    names,
    resnet8,
    single_head_attention,
    sketch,
    toyadmos,
)

__all__ = [
    "DESCRIBED",
    "SCHEMES",
    "SEED_DIGITS",
    "TRAINED",
    "build",
    "digits",
    "ds_cnn",
    "encoder",
    "gemm",
    "microllama",
    "microllama_prompt",
    "mobilenet_v1",
    "mobilenet_v1_224",
    "named",
    "names",
    "resnet8",
    "single_head_attention",
    "sketch",
    "toyadmos",
]
