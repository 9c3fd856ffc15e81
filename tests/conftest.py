"""Shared by all tests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from tvm_ffi import StructuralKey

from htvm.aot import reference
from htvm.errors import InternalError
from htvm.firmware import build, toolchain
from htvm.firmware.toolchain import Compiler
from htvm.stage_cache import StageCache

pytest_plugins = ["tests.rotation", "tests.slow_cases"]

# The same examples on every run and machine: a failure is the change's, not the day's.
settings.register_profile("htvm", derandomize=True, deadline=None)
settings.load_profile("htvm")

SHARING = ("cli/", "fitting/", "report/", "soc/test_boards.py")
"""Tests that build the same networks again and again."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the generated C and its digests into tests/golden instead of comparing",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collect no garbage among what all tests need to the end: it takes a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test in which an `InternalError` was made, even where it accepts any `HtvmError`."""
    made: list[str] = []
    create = InternalError.__init__

    def noted(self: InternalError, what: str, **parts: str) -> None:
        made.append(what)
        create(self, what, **parts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InternalError, "__init__", noted)
        yield
    if made and item.get_closest_marker("defects") is None:
        pytest.fail(f"internal errors: {made}")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether the files in tests/golden are to be written instead of compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def compiler() -> Compiler:
    """The compilers of the ziglang package, with the user's cache."""
    return Compiler.zig()


@pytest.fixture(scope="session", autouse=True)
def programs_not_optimized(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile programs for this machine in a fraction of the time, unless slow tests run, too.

    Tools, such as the simulator, are those of the user.
    """
    if "not slow" not in request.config.option.markexpr:
        yield
        return
    flags, built = toolchain.HOST_FLAGS, Compiler.built

    def built_tool(self: Compiler, *inputs: Any, **options: Any) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(toolchain, "HOST_FLAGS", flags)
            return built(self, *inputs, **options)

    with pytest.MonkeyPatch.context() as patch:
        for module in (toolchain, build):
            patch.setattr(module, "HOST_FLAGS", (*flags, "-O0"))
        patch.setattr(Compiler, "built", built_tool)
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_kept() -> Iterator[None]:
    """Compute the results of all stages anew: code that a test replaces is not in their keys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StageCache, "of_user", lambda: StageCache(None))
        yield


@pytest.fixture(scope="module", autouse=True)
def stages_kept(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Let tests of tools, which replace no code of the compiler, share results of stages."""
    place = request.path.relative_to(Path(__file__).parent).as_posix()
    if not place.startswith(SHARING):
        yield
        return
    folder = tmp_path_factory.getbasetemp() / "stages"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StageCache, "of_user", lambda: StageCache(folder))
        yield


@pytest.fixture(scope="session", autouse=True)
def references_kept() -> Iterator[None]:
    """Let TVM compile equal modules once: they are the same function, in any test."""
    create = reference.build_llvm_reference

    @lru_cache(maxsize=32)
    def kept(module: StructuralKey, names: tuple[str, ...]) -> reference.Reference:
        return create(module.key)

    def build(module: Any) -> reference.Reference:
        # Messages have the names of parameters, which equal modules need not share.
        return kept(StructuralKey(module), tuple(str(p.name) for p in module["main"].params))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "build_llvm_reference", build)
        yield
