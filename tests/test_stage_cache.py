from __future__ import annotations

import logging
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.soc.registry import resolve, targets
from htvm import zoo
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.model import Model
from htvm.pipeline import compile_model
from htvm.stage_cache import StageCache
from htvm.tools.explain.explanation import explanation_of


@pytest.fixture
def cache(tmp_path: Path) -> StageCache:
    return StageCache(tmp_path / "stages")


@pytest.fixture(autouse=True)
def unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may edit a file while the tests run."""
    monkeypatch.setattr("htvm.stage_cache._BEGAN", float("inf"))


class Counted:
    """Computes a result, and counts how often."""

    def __init__(self, result: object = 7) -> None:
        self.result, self.times = result, 0

    def __call__(self) -> object:
        self.times += 1
        return self.result


# ------------------------------------------------------------------------------ the cache


def test_a_kept_result_is_not_computed_again(cache: StageCache) -> None:
    work = Counted({"cycles": np.arange(3)})
    key = cache.key("network", 1)
    first = cache.get("stage", key, work)
    again = cache.get("stage", key, work)
    assert work.times == 1
    assert first is not again
    np.testing.assert_array_equal(again["cycles"], [0, 1, 2])  # type: ignore[index]


def test_stages_and_inputs_are_told_apart(cache: StageCache) -> None:
    work = Counted()
    for stage, parts in (("a", (1,)), ("b", (1,)), ("a", (2,)), ("a", (1, 2)), ("a", ("1",))):
        cache.get(stage, cache.key(*parts), work)
    assert work.times == 5


def test_a_different_element_of_an_array_is_another_input(cache: StageCache) -> None:
    data = np.zeros((2, 3), np.int8)
    key = cache.key({"x": data})
    data[1, 2] = 1
    assert cache.key({"x": data}) != key


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:40]]
)
def test_a_damaged_result_is_computed_again(
    cache: StageCache, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    work = Counted()
    key = cache.key(1)
    cache.get("stage", key, work)
    (file,) = (tmp_path / "stages").iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert cache.get("stage", key, work) == 7
    assert cache.get("stage", key, work) == 7
    assert work.times == 2


def test_a_folder_that_cannot_be_written_only_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = StageCache(tmp_path / "file" / "stages")
    work = Counted()
    assert [cache.get("stage", cache.key(1), work) for _ in range(2)] == [7, 7]
    assert work.times == 2


def test_a_failure_is_not_kept_and_leaves_nothing(cache: StageCache, tmp_path: Path) -> None:
    def interrupted() -> object:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.get("stage", cache.key(1), interrupted)
    assert not (tmp_path / "stages").exists()
    assert cache.get("stage", cache.key(1), Counted(8)) == 8


def test_warnings_of_a_kept_result_are_said_again(
    cache: StageCache, caplog: pytest.LogCaptureFixture
) -> None:
    def work() -> int:
        logging.getLogger("htvm.quantization").warning("%d layers keep their numbers", 3)
        return 1

    for _ in range(2):
        caplog.clear()
        cache.get("stage", cache.key(1), work)
        assert [record.getMessage() for record in caplog.records] == ["3 layers keep their numbers"]


def test_functions_without_a_name_have_no_key(cache: StageCache) -> None:
    assert cache.key(lambda: 1) == ""


def test_classes_of_a_notebook_have_no_key(
    cache: StageCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class Array:
        lanes: int

    Array.__qualname__ = "Array"
    monkeypatch.setattr(Array, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Array", Array, raising=False)
    assert cache.key(Array(4)) == ""


def _said(script: str) -> str:
    """What a new process prints, which begins when files that were just written are old."""
    time.sleep(0.1)
    return subprocess.check_output([sys.executable, "-c", script], text=True)


_CHIP = """
from dataclasses import dataclass
@dataclass(frozen=True)
class Chip:
"""

_CHANGED = """
import sys
sys.path.insert(0, {folder!r})
import chip
from pathlib import Path
from htvm.stage_cache import StageCache
print(StageCache(Path("unused")).key(chip.Chip()))
"""


@pytest.mark.slow  # starts Python three times
def test_another_code_of_a_users_package_is_another_key(tmp_path: Path) -> None:
    def key(code: str) -> str:
        (tmp_path / "chip.py").write_text(code)
        script = _CHANGED.format(folder=str(tmp_path))
        return _said(script)

    first = key(f"{_CHIP}    def cycles(self): return 4\n")
    assert len(first.strip()) == 64
    assert key(f"{_CHIP}    def cycles(self): return 5\n") != first
    assert key(f"{_CHIP}    def cycles(self): return 4\n") == first


_EDITED = """
import sys, os, time
from pathlib import Path
sys.path.insert(0, {folder!r})
import chip.core
from htvm.stage_cache import StageCache
cache, file = StageCache(Path("unused")), Path(chip.__file__).with_name({file!r})
first = cache.key(chip.core.Chip())
assert cache.key(chip.core.Chip()) == first
if {edit}:
    file.write_text("# other")
    os.utime(file, ({date},) * 2)
print(first, cache.key(chip.core.Chip()) or "none")
"""


@pytest.mark.slow  # starts Python several times
@pytest.mark.parametrize("date", ["time.time() + 1", "0"], ids=["now", "with an old date"])
@pytest.mark.parametrize("file", ["core.py", "layer.c.jinja"])
def test_files_of_a_users_package_that_change(tmp_path: Path, file: str, date: str) -> None:
    """They make another key; a process that might still have the old ones, or not, has none."""
    (tmp_path / "chip").mkdir()
    (tmp_path / "chip" / "__init__.py").write_text("")
    (tmp_path / "chip" / "core.py").write_text(f"{_CHIP}    pass\n")
    (tmp_path / "chip" / "layer.c.jinja").write_text("one")

    def keys(*, edit: bool) -> list[str]:
        script = _EDITED.format(folder=str(tmp_path), file=file, edit=edit, date=date)
        return _said(script).split()

    first, again = keys(edit=False)
    assert first == again and len(first) == 64
    assert keys(edit=True) == [first, "none"]
    (tmp_path / "chip" / "core.py").write_text(f"{_CHIP}    pass\n")
    (tmp_path / "chip" / file).write_text(f"{_CHIP}    pass  # two\n")
    later, _ = keys(edit=False)
    assert len(later) == 64 and later != first


_DURING = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
import chip
from htvm.stage_cache import StageCache
cache, file = StageCache(Path({folder!r}) / "stages"), Path(chip.__file__)
key = cache.key(chip.Chip())
assert key
cache.get("stage", key, lambda: {make})
print(len(list((Path({folder!r}) / "stages").glob("stage-*"))))
"""


def test_code_that_changes_while_a_stage_runs_keeps_nothing(tmp_path: Path) -> None:
    """Some of what the stage has imported may be the new code."""
    (tmp_path / "chip.py").write_text(f"{_CHIP}    pass\n")

    def kept(make: str) -> int:
        script = _DURING.format(folder=str(tmp_path), make=make)
        return int(_said(script))

    assert kept('file.write_text(file.read_text() + "    fast = 1")') == 0
    assert kept("1") == 1


def test_objects_of_tvm_are_refused(cache: StageCache, tmp_path: Path) -> None:
    # Writing some modules of TVM ends the process.
    model = zoo.build("toyadmos")
    assert cache.key(model.module) == ""
    cache.get("stage", cache.key(1), Counted(model.module))
    assert not (tmp_path / "stages").exists()


def test_old_results_are_removed(cache: StageCache, tmp_path: Path) -> None:
    cache.get("stage", cache.key(1), Counted())
    (old,) = (tmp_path / "stages").iterdir()
    os.utime(old, (0, 0))
    cache.get("stage", cache.key(2), Counted())
    assert not old.exists()
    assert len(list((tmp_path / "stages").iterdir())) == 1


def _many(folder: Path) -> bool:
    cache = StageCache(folder)
    return all(cache.get("stage", cache.key(n % 5), lambda n=n: n % 5) == n % 5 for n in range(50))


def test_processes_share_a_folder(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert all(pool.map(_many, [tmp_path / "stages"] * 4))
    assert not [path for path in (tmp_path / "stages").iterdir() if path.name.startswith(".new")]


# ------------------------------------------------------------------------------ builds


def _compiled(model: Model, cache: StageCache | None, **options: object) -> Compiled:
    return compile_model(
        model,
        "diana.digital",
        BuildOptions(**options),
        cache=cache,  # type: ignore[arg-type]
    )


def _texts(compiled: Compiled) -> tuple[object, ...]:
    program = compiled.program
    return (
        program.cpu_source,
        [kernel.source for code in compiled.regions.values() for kernel in code.kernels],
        program.plan,
        str(compiled.retargeted.report),
        str(explanation_of(compiled)),
    )


def test_a_kept_build_equals_a_new_one(cache: StageCache, monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.build("toyadmos")
    new = _compiled(model, None)
    _compiled(model, cache)

    def called(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    for module, name in (
        ("htvm.quantization.retarget", "_retarget"),
        ("htvm.placement.plan", "place"),
        ("htvm.aot.cpu", "compile_cpu"),
    ):
        monkeypatch.setattr(sys.modules[module], name, called)
    kept = _compiled(zoo.build("toyadmos"), cache)
    assert _texts(kept) == _texts(new)
    # The module that the reference is computed from is the retargeted one, too.
    assert str(kept.retargeted.model.module) == str(new.retargeted.model.module)


@pytest.mark.slow
def test_other_options_and_data_are_other_builds(cache: StageCache) -> None:
    model = zoo.build("toyadmos")
    (info,) = model.inputs
    keys = {_compiled(model, cache).key, _compiled(model, cache, cpu_kernels="default").key}
    keys.add(_compiled(model, cache, policy="latency").key)
    data = np.ones((8, *info.shape), np.int8)
    for value in (1, 2):
        options = BuildOptions()
        keys.add(compile_model(model, "diana.digital", options, data=data * value, cache=cache).key)
    keys.add(compile_model(model, "diana.cpu", BuildOptions(), cache=cache).key)
    assert len(keys) == 6 and "" not in keys


def test_a_policy_that_is_a_function_is_not_kept(cache: StageCache, tmp_path: Path) -> None:
    model = zoo.build("toyadmos")
    made = _compiled(model, cache, policy=lambda layer, candidates: "cpu")
    assert made.key == ""
    assert not (tmp_path / "stages").exists() or not list((tmp_path / "stages").glob("gen*"))


def test_every_target_has_a_key(cache: StageCache) -> None:
    for name in targets():
        assert cache.key(resolve(name)), name
