"""Deeploy: an ONNX file for its generic platform, as far as its package goes."""

from __future__ import annotations

import tempfile
from typing import Any

from common import main, timed


def probe(case: dict[str, str]) -> dict[str, Any]:
    import onnx
    import onnx_graphsurgeon as gs
    from Deeploy.AbstractDataTypes import PointerClass
    from Deeploy.CommonExtensions.DataTypes import float32_t, int8_t
    from Deeploy.Targets.Generic.Deployer import GenericDeployer
    from Deeploy.Targets.Generic.Platform import GenericOptimizer, GenericPlatform

    graph = gs.import_onnx(onnx.shape_inference.infer_shapes(onnx.load(case["path"])))
    real = str(graph.inputs[0].dtype) == "float32"
    kinds = {tensor.name: PointerClass(float32_t if real else int8_t) for tensor in graph.inputs}
    with tempfile.TemporaryDirectory() as folder:
        deployer = GenericDeployer(
            graph, GenericPlatform(), kinds, GenericOptimizer, lambda graph: list(graph.nodes),
            name="model", deeployStateDir=folder,
        )  # fmt: skip
        _, seconds = timed(lambda: _generate(deployer))
    return {
        "reads": True,
        "reason": "makes C; its kernels are not in the package, so it was not run",
        "compile_seconds": seconds,
    }


def _generate(deployer: Any) -> None:
    deployer.frontEnd()
    deployer.midEnd()
    deployer.backEnd()
    deployer.generateFunction()


main(probe)
