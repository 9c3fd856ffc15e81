"""Metadata of packages, as the build systems' own packages read them, where these are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

import htvm
from htvm.tools.cli.arguments import open_model


@pytest.fixture(scope="module")
def module() -> htvm.Module:
    return htvm.build(open_model("zoo:resnet8"), "cortex_m4")


@pytest.mark.parametrize(
    ("kind", "file"), [("platformio", "library.json"), ("arduino", "library.properties")]
)
def test_platformio_reads_both_kinds_of_libraries(
    kind: str, file: str, module: htvm.Module, tmp_path: Path
) -> None:
    """PlatformIO's schema of its own manifests, and of Arduino's."""
    parser = pytest.importorskip(
        "platformio.package.manifest.parser", reason="needs the package platformio"
    )
    from platformio.package.manifest.schema import ManifestSchema

    package = module.export(tmp_path / kind, kind=kind)
    found = parser.ManifestParserFactory.new_from_file(str(package / file)).as_dict()
    loaded = ManifestSchema().load_manifest(found)
    assert loaded["name"] == "resnet8" and loaded["version"] == "1.0.0"
    with pytest.raises(Exception, match="version"):
        ManifestSchema().load_manifest({**found, "version": "first"})


def test_the_component_manager_reads_the_component(module: htvm.Module, tmp_path: Path) -> None:
    manager = pytest.importorskip(
        "idf_component_tools.manager", reason="needs the package idf-component-manager"
    )
    package = module.export(tmp_path / "esp-idf", kind="esp-idf")
    found = manager.ManifestManager(str(package), "resnet8").validate().load()
    assert str(found.version) == "1.0.0" and [*found.dependencies] == ["idf"]
