"""The peers: what is installed of each, and what it takes."""

from __future__ import annotations

from benchmarks.peers.answer import Peer

__all__ = ["PEERS"]

PEERS = (
    Peer(
        "htvm",
        "this project, `generic.cpu`",
        (),
        ("tflite", "onnx"),
        "C for RV32 and any other C compiler",
        note="sizes of the linked RV32IMC firmware, runtime included; time of the same C, native",
    ),
    Peer(
        "tvm",
        "TVM as it comes",
        (),
        ("tflite", "onnx"),
        "machine code for this machine",
        note="Relax importer, default pipeline, LLVM; the environment of this project",
    ),
    Peer(
        "tflm",
        "TFLite Micro",
        ("tflite-micro", "numpy"),
        ("tflite",),
        "runs files by an interpreter",
        note="reference kernels; RAM: its arena",
        pre=True,
    ),
    Peer(
        "litert",
        "LiteRT",
        ("ai-edge-litert==2.3.0", "numpy"),
        ("tflite",),
        "runs files by an interpreter",
        note="default kernels (XNNPACK), one thread",
    ),
    Peer(
        "onnxruntime",
        "onnxruntime",
        ("onnxruntime==1.32.0", "numpy"),
        ("onnx",),
        "runs files by an interpreter",
        note="default optimizations, one thread; it defines the outputs of the ONNX file",
    ),
    Peer(
        "iree",
        "IREE",
        (
            "iree-base-compiler==3.13.0",
            "iree-base-runtime==3.13.0",
            "iree-tools-tflite",
            "onnx",
            "numpy",
        ),
        ("tflite", "onnx"),
        "machine code for this machine, in a container of its own",
        note="llvm-cpu, generic x86-64 or Arm; data: the compiled module",
    ),
    Peer(
        "emx",
        "emx-onnx-cgen",
        ("emx-onnx-cgen==1.4.0", "numpy", "pyelftools"),
        ("onnx",),
        "C for any compiler",
        note="sizes of its C compiled for RV32IMC with -Os, without a runtime",
    ),
    Peer(
        "onnx2c",
        "onnx2c",
        (),
        ("onnx",),
        "C for any compiler",
        note="in floats, with constants in flash; not in the package index: the program `onnx2c`",
        program="onnx2c",
    ),
    Peer(
        "helia",
        "heliaAOT",
        ("helia-aot==1.1.0",),
        ("tflite",),
        "C for Ambiq's Cortex-M chips, with Arm's kernels of its own version",
        note="Cortex-M55; by its licence for Ambiq's chips only: not run here",
    ),
    Peer(
        "deeploy",
        "Deeploy",
        ("deeploy-pulp==0.2.1",),
        ("onnx",),
        "C for clusters and Cortex-M, with kernels of its own",
    ),
    Peer(
        "vela",
        "Vela",
        ("ethos-u-vela==5.2.0",),
        ("tflite",),
        "commands of an Ethos-U beside a TFLite file",
        note="ethos-u55-128; for what runs them here, see `ethos_u55`; data: the compiled file",
    ),
    Peer(
        "executorch",
        "ExecuTorch",
        ("executorch==1.5.1",),
        (),
        "programs for its runtime",
        note="reads exports of torch",
        dependencies=False,
    ),
    Peer(
        "zigzag",
        "ZigZag",
        ("zigzag-dse==3.9.1", "six"),
        ("onnx",),
        "estimates of accelerators",
        note="makes no program",
    ),
    Peer(
        "stream",
        "Stream",
        ("stream-dse==0.0.8",),
        ("onnx",),
        "estimates of many cores",
        note="makes no program",
    ),
)
"""In the order of the tables; the first is ours."""
