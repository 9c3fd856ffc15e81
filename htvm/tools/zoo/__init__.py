"""The MLPerf Tiny networks and two transformers with seeded weights, and trained networks.

The MLPerf Tiny networks are in DIANA's own number schemes, and need neither a file nor retargeting:
their layers are in the form that the digital core executes, the analog core, or (by the published
rule) one of both, so that a build for them computes exactly what the model does.  One transformer
is an encoder in the Integer Transformer Accelerator's arithmetic (`htvm.tools.zoo.transformers`),
the other a language model (`htvm.tools.zoo.llama`).  These stand in for trained models in tests and
benchmarks of speed and size; they recognise nothing.  The trained networks recognise handwritten
digits (`htvm.zoo.trained`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from byoc_dory.errors import ModelError, nearest
from htvm.public import boundary
from htvm.tools.zoo.llama import LENGTH, PROMPT, microllama, microllama_prompt
from htvm.tools.zoo.schemes import SCHEMES, check_number
from htvm.tools.zoo.trained import TRAINED, load_trained
from htvm.tools.zoo.transformers import LAYERS, encoder, gemm, single_head_attention

if TYPE_CHECKING:
    from htvm.model import Model
    from htvm.tools.zoo.drawing import Sketch
    from htvm.tools.zoo.schemes import Layout, Scheme

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

_ENCODER = "encoder"
_LLAMA = "microllama"
_NETWORKS = ("ds_cnn", "ds_cnn_7x5", "mobilenet_v1", "resnet8", "toyadmos")
_LARGE = ("mobilenet_v1_224",)

DESCRIBED = {
    "digits": "recognises handwritten digits of 8x8 pixels; trained",
    "digits_ternary": "the same with ternary weights, for an analog core; trained",
    "resnet8": "MLPerf Tiny's image classification; random weights",
    "ds_cnn": "MLPerf Tiny's keyword spotting; random weights",
    "ds_cnn_7x5": "the same with a filter that DIANA's cores take, as HTVM's authors ran it",
    "mobilenet_v1": "MLPerf Tiny's visual wake words; random weights",
    "toyadmos": "MLPerf Tiny's anomaly detection, dense layers; random weights",
    "mobilenet_v1_224": "MobileNetV1 for 224x224 pixels; random weights",
    "encoder": "an integer transformer of 24 layers; encoder:1 is one; random weights",
    "microllama": "a small language model with a cache; microllama:8 has 8 positions",
}
"""What the networks are, by name."""


@boundary
def names() -> tuple[str, ...]:
    """Return the names of the MLPerf Tiny networks, which have a `sketch`.

    `build` also takes the names in `TRAINED`, ``"mobilenet_v1_224"``, ``"encoder"`` and
    ``"microllama"``.
    """
    return _NETWORKS


@boundary
def sketch(name: str, seed: int = 0, scheme: Scheme = "8-bit") -> Sketch:
    """Return a network's sketch, before it becomes a model: its operators and their statistics.

    Raises:
        ModelError: there is no such network or scheme, or the seed is not a number.
    """
    if not isinstance(name, str) or name not in (*_NETWORKS, *_LARGE):
        raise ModelError(
            f"there is no network {name!r}",
            where="htvm.zoo",
            hint=f"{nearest(name, DESCRIBED)}one of {', '.join(DESCRIBED)}",
        )
    check_number("the seed", seed, least=0, where=f"htvm.zoo, network '{name}'")
    from htvm.tools.zoo.drawing import Sketch  # the compiler, which takes a second to import
    from htvm.tools.zoo.networks import NETWORKS

    shape, draw = NETWORKS[name]
    net = Sketch(name, shape, seed, scheme)
    draw(net)
    return net


@boundary
def build(name: str, seed: int = 0, *, layout: Layout = "NHWC", scheme: str = "8-bit") -> Model:
    """Return the network called ``name`` as a model.

    Args:
        name: one of `names`, or of `TRAINED`, or ``"mobilenet_v1_224"``, ``"encoder"`` or
            ``"microllama"``.
        seed: seed of the weights; the same seed gives the same model everywhere.
        layout: order of the axes of the maps, ``"NHWC"`` (like TFLite) or ``"NCHW"`` (like ONNX);
            trained networks have the latter.
        scheme: ``"8-bit"``, ``"ternary"`` or ``"mixed"`` (see `htvm.tools.zoo.drawing`); for the
            encoder, the number of its layers as text instead, or ``"8-bit"`` for all of them; for
            the language model, the positions of its cache, ``"8-bit"`` for 64, or ``"prompt"`` and
            a number of tokens (16 by default) for the network that reads a prompt.

    Raises:
        ModelError: there is no such network or scheme; or the network is trained, and a seed or
            scheme was given.
        DependencyError: the network is trained, and the extra ``digits`` is not installed.
    """
    if name in TRAINED:
        if seed != 0 or scheme != "8-bit":
            raise ModelError(
                "a trained network has no seeds and no schemes to choose from",
                where=f"htvm.zoo, network '{name}'",
                hint=f"leave both out; trained networks are {', '.join(TRAINED)}",
            )
        return load_trained(name)
    if name == _ENCODER:
        return encoder(_layers(scheme), seed=seed)
    if name == _LLAMA:
        return _language_model(scheme, seed)
    drawn = sketch(name, seed, cast("Scheme", scheme))
    from htvm.tools.zoo.networks import model

    return model(drawn, layout)


SEED_DIGITS = 18
"""Most digits of a seed in a name."""


@boundary
def named(text: str) -> Model:
    """Return the network with a name as on the command line: ``zoo:NAME[:SCHEME][@SEED]``.

    Raises:
        ModelError: there is no such network or scheme, or the seed is not a number.
        DependencyError: the network is trained, and the extra ``digits`` is not installed.
    """
    whole, _, seed = text.removeprefix("zoo:").partition("@")
    name, _, scheme = whole.partition(":")
    if seed and not (seed.isdecimal() and len(seed) <= SEED_DIGITS):
        raise ModelError(
            f"the seed {seed[:40]!r} is not a number of at most {SEED_DIGITS} digits",
            where=f"MODEL zoo:{whole}",
            hint=f"e.g. zoo:{whole}@1",
        )
    return build(name, int(seed or 0), scheme=scheme or "8-bit")


def _layers(scheme: str) -> int:
    if scheme in ("8-bit", str(LAYERS)):
        return LAYERS
    if not re.fullmatch("[1-9][0-9]{0,3}", scheme):
        raise ModelError(
            f"an encoder has no scheme {scheme!r}",
            where="htvm.zoo, network 'encoder'",
            hint="give the number of layers: zoo:encoder:1",
        )
    return int(scheme)


def _language_model(scheme: str, seed: int) -> Model:
    """Return the decoding step, or the network for a prompt, that a scheme names."""
    found = re.fullmatch("(prompt)?([1-9][0-9]{0,3})?", "" if scheme == "8-bit" else scheme)
    if found is None:
        raise ModelError(
            f"a language model has no scheme {scheme!r}",
            where="htvm.zoo, network 'microllama'",
            hint="give the positions of its cache, zoo:microllama:64, or a prompt's number of "
            "tokens, zoo:microllama:prompt16",
        )
    prompt, number = found.groups()
    if prompt:
        return microllama_prompt(int(number or PROMPT), seed=seed)
    return microllama(int(number or LENGTH), seed=seed)


def resnet8(seed: int = 0, *, scheme: Scheme = "8-bit") -> Model:
    """Return ResNet-8, 3x32x32 to 12 classes."""
    return build("resnet8", seed, scheme=scheme)


def ds_cnn(filter: tuple[int, int] = (10, 4), seed: int = 0, *, scheme: Scheme = "8-bit") -> Model:
    """Return DS-CNN for keyword spotting, 12 classes.

    Args:
        filter: filter of the first layer, along time and frequency: (10, 4) as in MLPerf Tiny, or
            (7, 5) as HTVM ran it, with the spectrogram transposed (1x10x49).
        seed: seed of the weights.
        scheme: scheme as for `build`.

    Raises:
        ModelError: the filter is another.
    """
    variants = {(10, 4): "ds_cnn", (7, 5): "ds_cnn_7x5"}
    if tuple(filter) not in variants:
        raise ModelError(f"no DS-CNN has the filter {filter}", hint="take (10, 4) or (7, 5)")
    return build(variants[(filter[0], filter[1])], seed, scheme=scheme)


def mobilenet_v1(seed: int = 0, *, scheme: Scheme = "8-bit") -> Model:
    """Return MobileNetV1 of width 0.25, 3x96x96 to 4 classes."""
    return build("mobilenet_v1", seed, scheme=scheme)


def mobilenet_v1_224(seed: int = 0, *, scheme: Scheme = "8-bit") -> Model:
    """Return MobileNetV1 1.0 for ImageNet, 3x224x224 to 1000 classes."""
    return build("mobilenet_v1_224", seed, scheme=scheme)


def toyadmos(seed: int = 0, *, scheme: Scheme = "8-bit") -> Model:
    """Return the ToyADMOS autoencoder, 640 values to 640."""
    return build("toyadmos", seed, scheme=scheme)


def digits(*, ternary: bool = False) -> Model:
    """Return a small convolutional network for handwritten digits, 1x8x8 to 10 classes.

    Args:
        ternary: whether its weights are ternary, except in the first and last layer, for the analog
            core.

    Raises:
        DependencyError: the extra ``digits`` is not installed.
    """
    return load_trained("digits_ternary" if ternary else "digits")
