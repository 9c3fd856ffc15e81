"""Converting the user's arguments to the library's types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from byoc_dory.errors import nearest
from byoc_dory.soc.parameters import parse_size
from htvm.arrays import read_arrays
from htvm.errors import InputError
from htvm.inputs import bind_inputs, seeded_inputs
from htvm.integer_io import with_integer_io
from htvm.opening import with_samples
from htvm.tools.zoo import SEED_DIGITS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from numpy.typing import NDArray

    from htvm.frontend.limits import Limits
    from htvm.inputs import Inputs
    from htvm.model import Model, TensorInfo

    Kind = TypeVar("Kind", bound=DataclassInstance)


@dataclass(frozen=True)
class Reading:
    """What the command line says of how a file is read.

    Attributes:
        sizes: shapes of inputs whose sizes an ONNX file leaves open, by name.
        types: integer types of inputs that an ONNX file declares as real, by name.
        limits: what reading may take; the default's if ``None``.
    """

    sizes: Mapping[str, tuple[int, ...]]
    types: Mapping[str, str]
    limits: Limits | None


@dataclass(frozen=True)
class Network:
    """The network that a command line names, and how it is opened; fields as of `open_model`."""

    text: str
    reading: Reading
    io: str
    data: Path | None
    labels: Path | None = None

    def open(self) -> Model:
        """Open it; raises what `open_model` does."""
        return open_model(self.text, self.reading, self.io, self.data, self.labels)

    def open_with(self, given: str) -> tuple[Model, list[NDArray[Any]]]:
        """Open it, and read the inputs of one inference.

        Args:
            given: as for `read_inputs`.

        Raises:
            What `open_model`, `read_inputs` and `htvm.inputs.bind_inputs` do.
        """
        opened = self.open()
        return opened, bind_inputs(opened.inputs, read_inputs(given, opened.inputs))


_ZOO = "zoo:"
_RANDOM = "random"
_SIZE_DIGITS = 9
_UNNAMED = "arr_0"  # how numpy calls an array that was saved without a name


def open_model(
    text: str,
    reading: Reading | None = None,
    io: str = "source",
    data: Path | None = None,
    labels: Path | None = None,
) -> Model:
    """Open a model by path, or by ``zoo:NAME``, ``zoo:NAME:SCHEME`` or either with ``@SEED``.

    Args:
        text: path or name.
        reading: how it is read.
        io: ``"int8"`` for an int8 interface, else the source's (`htvm.with_integer_io`).
        data: .npz or .npy file with calibration inputs in the source's numbers, [N, ...].
        labels: .npz or .npy file with the right class of each of these, N integers.

    Raises:
        InputError: shapes, types or limits are given for a network of the zoo; or a file does not
            hold samples of the model's inputs, or their labels; or there are labels without data.
        ModelError: there is no such network, or the file is not a model.
        UnsupportedError: the model uses an unsupported feature.
    """
    if labels is not None and data is None:
        raise InputError(
            "labels without the inputs that they belong to",
            where="--labels",
            hint="add --data FILE with as many inputs",
        )
    model = with_samples(_open_model(text, reading), data, labels)
    return with_integer_io(model) if io == "int8" else model


def _open_model(text: str, reading: Reading | None) -> Model:
    import htvm

    if reading is None:
        return htvm.load(text)
    if text.startswith(_ZOO):
        for given, what, option, readers in (
            (reading.sizes, "has all sizes", "--input-shape", "ONNX files"),
            (reading.types, "has all types", "--input-type", "ONNX files"),
            (reading.limits, "is no file", "--limit", "files of others"),
        ):
            if given:
                raise InputError(f"'{text}' {what}", where=option, hint=f"it is for {readers}")
    return htvm.load(
        text,
        input_shapes=reading.sizes or None,
        input_types=reading.types or None,
        limits=reading.limits,
    )


def read_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Read ``NAME=1x3x224x224``: the name of an input, and its shape.

    Raises:
        InputError: it is not written so.
    """

    def sizes(value: str) -> tuple[int, ...]:
        return tuple(read_size(part) for part in value.lower().split("x"))

    return read_named(text, sizes, "shape of an input", "--input-shape", "image=1x3x224x224")


def read_type(text: str) -> tuple[str, str]:
    """Read ``NAME=uint8``: the name of an input, and its type.

    Raises:
        InputError: it is not written so.
    """

    def kind(value: str) -> str:
        if not value:
            raise ValueError
        return value

    return read_named(text, kind, "type of an input", "--input-type", "image=uint8")


def read_size(text: str) -> int:
    """Read a size of a few digits.

    Raises:
        ValueError: it is none.
    """
    if not text.isdecimal() or len(text) > _SIZE_DIGITS:
        raise ValueError
    return int(text)


def shape_text(name: str, shape: tuple[int, ...]) -> str:
    """Return what `read_shape` reads."""
    return f"{name}={'x'.join(map(str, shape))}"


def read_inputs(text: str, infos: Sequence[TensorInfo]) -> Inputs:
    """Read the inputs of one inference: ``random``, ``random:SEED``, ``.npy`` or ``.npz`` file.

    The arrays of an ``.npz`` file have the inputs' names; if the model has one input and the file
    one array, it may also be without a name: an ``.npy`` file, or what ``np.savez(file, array)``
    writes.

    Raises:
        InputError: the file does not hold arrays, or one array of another name; or the seed is not
            a number.
    """
    seed = _seed(text)
    return seeded_inputs(infos, seed) if seed is not None else _load(text, infos)


def read_samples(text: str, infos: Sequence[TensorInfo], count: int) -> list[Inputs]:
    """Read the inputs of several inferences.

    Args:
        text: as for `read_inputs`; arrays in files may have a leading axis over inferences.
        infos: the model's inputs.
        count: number of random inputs, with seeds from SEED on; files give what they hold, up to
            this.

    Raises:
        InputError: as for `read_inputs`; or the arrays hold different numbers of inferences.
    """
    seed = _seed(text)
    names = [info.name for info in infos]
    if seed is not None:
        draws = (seeded_inputs(infos, seed + i) for i in range(count))
        return [dict(zip(names, draw, strict=True)) for draw in draws]
    loaded = _load(text, infos)
    if not all(
        info.name in loaded and loaded[info.name].ndim == len(info.shape) + 1 for info in infos
    ):
        return [loaded]
    lengths = {len(loaded[name]) for name in names}
    if len(lengths) != 1 or 0 in lengths:
        raise InputError(
            f"the arrays hold {sorted(lengths)} inferences",
            where=f"file '{text}'",
            hint="give each input the same number of inferences, at least one",
        )
    return [{name: array[i] for name, array in loaded.items()} for i in range(min(count, *lengths))]


def _seed(text: str) -> int | None:
    """Return the seed of ``random`` or ``random:SEED``; None for any other text."""
    kind, _, seed = text.partition(":")
    if kind != _RANDOM:
        return None
    if seed and not (seed.isdecimal() and len(seed) <= SEED_DIGITS):
        raise InputError(
            f"the seed {seed[:40]!r} is not a number of at most {SEED_DIGITS} digits",
            where="--input",
            hint="e.g. random:1",
        )
    return int(seed or 0)


def _load(text: str, infos: Sequence[TensorInfo]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file by input name."""
    hint = "give an .npy or .npz file of numpy arrays, or random:SEED"
    if not text:
        raise InputError("the name of the inputs' file is empty", where="--input", hint=hint)
    path = Path(text)
    named = read_arrays(path, hint)
    if len(named) != 1 or len(infos) != 1:
        return named
    (name, array), info = next(iter(named.items())), infos[0].name
    if path.suffix.lower() == ".npz" and name not in (info, _UNNAMED):
        raise InputError(
            f"the model has no input '{name}'",
            where=f"file '{path}'",
            hint=f"call the array '{info}', or save it alone as .npy",
        )
    return {info: array}


Value = TypeVar("Value")


def read_named(
    text: str, convert: Callable[[str], Value], what: str, option: str, example: str
) -> tuple[str, Value]:
    """Return a name and its value, from ``NAME=VALUE``.

    Args:
        text: the text.
        convert: returns the value of its part of the text, or raises `ValueError`.
        what, option, example: what the text should be, where it was given, and such a text, for
            messages.

    Raises:
        InputError: it is not written so.
    """
    name, _, value = text.rpartition("=")
    try:
        if not name:
            raise ValueError
        return name, convert(value)
    except ValueError as error:
        raise InputError(
            f"{text[:60]!r} is no {what}", where=option, hint=f"e.g. {example}"
        ) from error


def read_limits(kind: type[Kind], given: Sequence[str], option: str) -> Kind:
    """Return limits of which some are given, each as ``NAME=VALUE``.

    Args:
        kind: class of the limits, whose fields are whole numbers.
        given: the texts; a value may be written as 67108864, 64M or 64MiB.
        option: name of the option, for messages.

    Raises:
        InputError: there is no such limit, it is given twice, or a value is none.
    """
    known = [field.name for field in fields(kind)]
    limits: dict[str, int] = {}
    for text in given:
        name, _, value = text.partition("=")
        number = parse_size(value)
        if name not in known:
            raise InputError(
                f"no limit {name[:60]!r}",
                where=option,
                hint=f"{nearest(name, known)}the limits are {', '.join(known)}",
            )
        if not number:
            raise InputError(
                f"{text[:60]!r} has no positive whole number",
                where=option,
                hint=f"e.g. {name}=64M",
            )
        if limits.setdefault(name, number) != number:
            raise InputError(f"two values of {name}", where=option)
    return kind(**limits)
