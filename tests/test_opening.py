"""What every public function that takes a model accepts: a path, a name of the zoo, a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import htvm
from htvm.errors import ModelError
from htvm.opening import opened

TAKERS: dict[str, Callable[[object], object]] = {
    "load": htvm.load,  # type: ignore[dict-item]
    "build": lambda model: htvm.build(model, "diana"),  # type: ignore[arg-type]
    "build to int8": lambda model: htvm.build(model, "diana", io="int8"),  # type: ignore[arg-type]
    "fit": lambda model: htvm.fit(model, "diana"),  # type: ignore[arg-type]
    "compare": lambda model: htvm.compare(model, "diana"),  # type: ignore[arg-type]
    "explore": lambda model: htvm.explore(model, "diana"),  # type: ignore[arg-type]
    "sweep": lambda model: htvm.sweep(model, "diana", {"l1": 65536}),  # type: ignore[arg-type]
    "with_integer_io": htvm.with_integer_io,  # type: ignore[dict-item]
}


@pytest.mark.parametrize("name", TAKERS)
def test_names_of_the_zoo_and_paths_are_looked_up(name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no network 'nothing'"):
        TAKERS[name]("zoo:nothing")
    for path in (str(tmp_path / "none.tflite"), tmp_path / "none.onnx"):
        with pytest.raises(ModelError, match="No such file"):
            TAKERS[name](path)
    with pytest.raises(ModelError, match="a int is not a model|there is no network to run"):
        TAKERS[name](3)


def test_a_network_of_the_zoo_is_loaded_and_explored() -> None:
    model = htvm.load("zoo:toyadmos@2")
    assert model.sha256 == htvm.zoo.named("zoo:toyadmos@2").sha256
    assert opened(model) is model
    assert htvm.load("zoo:toyadmos", "other").name == "other"
    found = htvm.explore("zoo:toyadmos", "diana.digital", objectives=["none"], l1_budgets=[65536])
    assert found.records
    assert found == htvm.explore(
        htvm.load("zoo:toyadmos"), "diana.digital", objectives=["none"], l1_budgets=[65536]
    )


def test_options_for_files_are_refused_for_the_zoo() -> None:
    with pytest.raises(ModelError, match="'input_shapes' is for ONNX files alone; zoo:digits"):
        htvm.load("zoo:digits", input_shapes={"image": (1, 1, 8, 8)})
