"""Arguments have one order everywhere: SoC, accelerator, layer, tile or plan, options."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("byoc_dory", "htvm/placement", "patterns/byoc", "patterns/dispatch", "docs/examples")
ORDER = (
    {"Soc"},
    {"Accelerator", "Core"},
    {"Layer", "Region"},
    {"Tile", "Solution", "LayerPlan", "MapLoop", "TileProgram", "Call"},
    {"TilingOptions"},
)
KINDS = "SoC, accelerator, layer, tile or plan, options"


def parsed() -> dict[Path, ast.Module]:
    files = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]
    return {file.relative_to(ROOT): ast.parse(file.read_text("utf-8")) for file in files}


def ranks_of(trees: dict[Path, ast.Module]) -> dict[str, int]:
    """Return the place in `ORDER` of each class of byoc_dory, which is that of its base class."""
    ranks = {name: place for place, names in enumerate(ORDER) for name in names}
    classes = [
        (node.name, [base.id for base in node.bases if isinstance(base, ast.Name)])
        for file, tree in trees.items()
        if file.parts[0] != "htvm" and file.parts[0] != "patterns"
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    while True:
        found = {
            name: ranks[base]
            for name, bases in classes
            for base in bases
            if base in ranks and name not in ranks
        }
        if not found:
            return ranks
        ranks |= found


def place_of(argument: ast.arg, ranks: dict[str, int]) -> int | None:
    """Return the place of an argument whose type is a class, or one or `None`."""
    note = argument.annotation
    if isinstance(note, ast.BinOp):
        note = note.left
    return ranks.get(note.id) if isinstance(note, ast.Name) else None


def misordered(trees: dict[Path, ast.Module], ranks: dict[str, int]) -> Iterator[str]:
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                listed = [place_of(entry, ranks) for entry in node.args.args]
                places = [place for place in listed if place is not None]
                if places != sorted(places):
                    names = ", ".join(entry.arg for entry in node.args.args)
                    yield f"{file}:{node.lineno}: {node.name}({names}) is not in the order {KINDS}"


def test_signatures_have_one_order() -> None:
    trees = parsed()
    assert list(misordered(trees, ranks_of(trees))) == []


@pytest.mark.parametrize(
    "signature", ["layer: Layer, soc: Soc", "plan: LayerPlan, core: Mac | None"]
)
def test_others_are_found(signature: str) -> None:
    text = f"class Mac(Accelerator): ...\ndef cost({signature}) -> int: ..."
    trees = {Path("byoc_dory/example.py"): ast.parse(text)}
    (found,) = misordered(trees, ranks_of(trees))
    assert found.startswith("byoc_dory/example.py:2: cost(") and KINDS in found
