"""Typical mistakes: each is answered before anything is planned or built, with what to do.

Model, option, value and file are wrong one at a time.  Whatever a mistake is about, nothing is
written, and planning fails the test.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm.pipeline
import htvm.placement.plan
import htvm.tools.fitting
from htvm.tools.cli.app import main

NET = "zoo:toyadmos"  # its input is int8 [1, 640]

# The command line, and words of the answer: what is wrong, and what to do.
MISTAKES = (
    ("run nothing.tflite", "cannot be read", "check the path"),
    ("run folder", "a folder is not a model", "give a file"),
    ("run text.tflite", "not a TFLite model", "give a .tflite or .onnx file"),
    ("run empty.onnx", "not an ONNX model", "export it again"),
    ("run zoo:resnet9", "no network 'resnet9'", "did you mean resnet8?"),
    ("run zoo:toyadmos:binary", "no scheme 'binary'", "one of 8-bit"),
    (f"run {NET} -t dianna", "unknown target 'dianna'", "did you mean diana?"),
    (f"run {NET} -t diana:cores=4", "no parameter 'cores'", "its parameters are"),
    (f"run {NET} -t diana:dma=5", "cannot be '5'", "4, 8, 16, 32"),
    (f"run {NET} --board nucleo-l4r5z", "unknown board", "did you mean nucleo-l4r5zi?"),
    (f"run {NET} --board pico-2 -t diana", "two answers to one question", "leave out --target"),
    (f"run {NET} --policy fastest", "'fastest' is not one of", "latency"),
    (f"run {NET} --schedule overlaped", "'overlaped' is not one of", "overlapped"),
    (f"run {NET} --platform rv23", "'rv23' is not one of", "rv32"),
    (f"run {NET} --rewrites maybe", "'maybe' is not one of", "'off'"),
    (f"run {NET} --objective speed", "no tiling objective 'speed'", "latency"),
    (f"run {NET} --l1 64q", "'64q' is no size", "e.g. 64k"),
    (f"run {NET} --l1 -5", "'-5' is no size", "e.g. 64k"),
    (f"run {NET} --l1 1M", "L1 budget of 1048576 B", "give at most 256000"),
    (f"run {NET} --l1", "'--l1' requires an argument", ""),
    (f"run {NET} --l2 64k", "size of L2 is fixed", "generic.cpu"),
    (f"run {NET} -t diana.cpu --l1 64k", "--l1 says nothing about diana.cpu", "leave it out"),
    (f"report {NET} -t cortex_m4 --policy latency", "which has no accelerators", "leave it out"),
    (f"run {NET} --tiling nothing.json", "cannot be read", "htvm explore --out"),
    (f"run {NET} --tiling broken.json", "cannot be read", "htvm explore --out"),
    (f"run {NET} --input nothing.npz", "cannot read inputs", "random:SEED"),
    (f"run {NET} --input text.tflite", "no numpy arrays", "random:SEED"),
    (f"run {NET} --input names.npz", "no input 'image'", "save it alone as .npy"),
    (f"run {NET} --input float.npy", "dtype float32 instead of int8", "quantize real values"),
    (f"run {NET} --input shape.npy", "shape [1, 5] instead of [1, 640]", "reshape it"),
    (f"run {NET} --input random:x", "seed 'x' is not a number", "random:1"),
    (f"run {NET} --io int16", "'int16' is not one of", "int8"),
    (f"run {NET} --data nothing.npz", "No such file", ""),
    (f"run {NET} --data shape.npy", "[1, 5]", "640"),
    (f"run {NET} --input-shape input=1x640", "has all sizes", "for ONNX files"),
    (f"run {NET} --input-shape wide", "is no shape of an input", "image=1x3x224x224"),
    (f"run {NET} --limit folded_elements=64M", "is no file", "files of others"),
    ("run text.tflite --limit folded_element=9", "no limit 'folded_element'", "folded_elements?"),
    ("run text.tflite --limit decoded_bytes", "no positive whole number", "decoded_bytes=64M"),
    ("run text.tflite --limit decoded_bytes=-1", "no positive whole number", "decoded_bytes=64M"),
    ("run text.tflite --limit decoded_bytes=0", "no positive whole number", "decoded_bytes=64M"),
    ("run text.tflite --limit ''", "no limit ''", "decoded_bytes, folded_elements"),
    ("run text.tflite --limit decoded_bytes=1k --limit decoded_bytes=2k", "two values", "--limit"),
    ("quantize text.tflite --data eight.npy --out q.onnx --limit bytes=1", "no limit 'bytes'", ""),
    (f"sweep {NET} --l1 64k --limit bytes=1", "no limit 'bytes'", "the limits are"),
    (f"run {NET} --fail-if cycels>3", "cycels", "did you mean cycles?"),
    (f"run {NET} --fail-if cycles>much", "is no condition", ""),
    (f"run {NET} --chek", "No such option", "--check"),
    (f"run {NET} --out nowhere/out.npz", "cannot write the outputs", "folder that exists"),
    (f"run {NET} --out folder", "this is not a file", "name a file"),
    (f"run {NET} --out out.txt", "is not the name of an .npz file", "end it with .npz"),
    (f"run {NET} --out out", "is not the name of an .npz file", "end it with .npz"),
    (f"report {NET} --out page.pdf", "which kind of report", "end the name with .html"),
    (f"report {NET} --out nowhere/page.html", "cannot write the report", "folder that exists"),
    (f"report {NET} --format html", "needs a file", "add --out FILE"),
    ("report broken.json", "not JSON", "saved as .json"),
    (f"compile {NET}", "Missing option", "--out"),
    (f"compile {NET} --out folder", "notes.txt", "choose an empty or new folder"),
    (f"compile {NET} --out text.tflite", "text.tflite", "folder"),
    (f"compile {NET} --out new.zip", "'new.zip' is the name of a file", "name a folder"),
    (f"compile {NET} --out new --as mlf -t cortex_m4", "not the name of a tar file", ".tar"),
    (f"compile {NET} --out new --as zefyr", "zefyr", "zephyr"),
    (f"compile {NET} --out new --as zephyr", "DIANA has devices", "cortex_m4"),
    (f"compile {NET} --out new --assembly late", "no command streams", "build for dla"),
    (f"compare {NET} --count 0", "0 is not in the range", "x>=1"),
    (f"compare {NET} --out bars.xls", "which kind of picture", "end the name with .png"),
    (f"explain {NET} --changes -1", "-1 is not in the range", "x>=0"),
    (f"fit {NET} --board foo", "unknown board 'foo'", "`htvm boards` lists all"),
    (f"verify {NET} --golden nothing.npz", "cannot read outputs", "outputs' names"),
    (f"explore {NET} --objective spead", "no tiling objective 'spead'", "latency"),
    (f"explore {NET} --out text.tflite", "is not a folder", "name a folder"),
    (f"explore {NET} --out tilings.csv", "is the name of a file", "name a folder"),
    (f"explore {NET} -t diana.cpu", "no accelerator to tile for", "diana.digital"),
    (f"sweep {NET}", "nothing to sweep", "give lists of values by name"),
    (f"sweep {NET} --cores 1,2", "no parameter 'cores'", "its parameters are"),
    (f"sweep {NET} --l1 a,b", "cannot be 'a'", "1KiB to 16MiB"),
    (f"sweep {NET} --l1 64k --out text.tflite", "is not a folder", "name a folder"),
    (f"sweep {NET} --l1 64k --out rows.csv", "is the name of a file", "name a folder"),
    (f"sweep {NET} --dma.queue_deph 1", "no parameter 'dma.queue_deph'", "dma.queue_depth?"),
    (f"sweep {NET} --digital.lanes 32", "DIANA cannot have digital.lanes=32", "rows sets both"),
    (f"sweep {NET} --l1 64k --results r.xls", "cannot be written as .xls", ".parquet or .csv"),
    ("diff nothing.json broken.json", "cannot read the report", "saved as .json"),
    ("quantize nothing.onnx --out q.onnx", "Missing option", "--data"),
    ("quantize nothing.onnx --data float.npy --out q.tflite", "ONNX file", "end it with .onnx"),
    ("targets new mychip --out mychip.html", "is the name of a file", "name a folder"),
    ("targets show dianna", "unknown target 'dianna'", "did you mean diana?"),
    ("--confined rnu zoo:resnet8", "no verb 'rnu'", "did you mean run?"),
    (f"--allow seconds=9 run {NET}", "not confined", "add --confined"),
    (f"--confined --allow second=9 run {NET}", "no limit 'second'", "seconds?"),
    (f"--confined --allow seconds=x run {NET}", "no positive whole number", "seconds=64M"),
    (f"--confined --allow memory_bytes=1M run {NET}", "cannot be loaded", "1,073,741,824"),
    ("rnu zoo:resnet8", "no verb 'rnu'", "did you mean run?"),
    ("run ''", "the name of the model is empty", "zoo:NAME"),
    ("run pipe", "a device or pipe is not a model", "give a file"),
    ("run zoo:toyadmos@-1", "seed '-1' is not a number", "zoo:toyadmos@1"),
    (f"run {NET} zoo:resnet8", "unexpected extra argument", "zoo:resnet8"),
    (f"run {NET} -t siracusa:cores=0", "cannot be '0'", "1 to 8"),
    (f"run {NET} -t siracusa:cores=2,cores=4", "given twice", "each parameter once"),
    (f"run {NET} -t generic.cpu --l2 12", "L2 cannot have 12 B", "a multiple of 16"),
    (f"run {NET} --l1 1e3", "'1e3' is no size", "e.g. 64k"),
    (f"run {NET} --tiling list.json", "Expected `object`", "htvm explore --out"),
    (f"run {NET} --tiling folder", "Is a directory", "htvm explore --out"),
    (f"run {NET} --input ''", "the inputs' file is empty", "random:SEED"),
    (f"run {NET} --input folder", "Is a directory", "random:SEED"),
    (f"run {NET} --input pipe", "this is a pipe", "random:SEED"),
    (f"run {NET} --input objects.npy", "no numpy arrays of numbers", "random:SEED"),
    (f"run {NET} --input two.npz", "no input 'other'", "it takes input: int8[1, 640]"),
    (f"run {NET} --labels three.npy", "without the inputs", "add --data FILE"),
    (f"run {NET} --data eight.npy --labels three.npy", "[3] for 8 inputs", "give 8 integers"),
    (f"run {NET} --data eight.npy --labels real.npy", "type float32", "N integers"),
    (f"run {NET} --data eight.npy --labels large.npy", "are no classes", "give 0 to 639"),
    (f"run {NET} --data ''", "the name is empty", "--data"),
    (f"run {NET} --fail-if 'cycles > 2%'", "compares with an earlier report", "htvm diff"),
    (f"run {NET} --fail-if 'cycles > nan'", "is no condition", "'cycles > 200000'"),
    (f"run {NET} --out text.tflite/out.npz", "Not a directory", "folder that exists"),
    (f"report {NET} --fail-if 'cycles > 2%'", "compares with an earlier report", "leave out the %"),
    (f"report {NET} --out ''", "the name is empty", "--out"),
    (f"report {NET} --format pdf --out page.pdf", "'pdf' is not one of", "html"),
    ("report list.json", "this JSON is not a report", "saved as .json"),
    (f"compile {NET} --out ''", "the name is empty", "--out"),
    (f"compile {NET} --out text.tflite/new", "'text.tflite' is a file", "choose a folder"),
    (f"compare {NET} --count ten", "'ten' is not a valid integer", "--count"),
    (f"verify {NET} -t ethos_u", "which has no Arm Cortex-M55", "htvm run --check"),
    (f"verify {NET} -t cortex_m33:cores=2", "which has no Arm Cortex-M33", "htvm run --check"),
    (f"verify {NET} --golden float.npy", "float32 instead of int8", "not real values"),
    (f"verify {NET} --golden ''", "the name is empty", "--golden"),
    (f"explore {NET} --alpha -1", "-1 is not in the range", "x>=0"),
    (f"explore {NET} --objective array --beta x=1", "no heuristic 'x'", "long DMA"),
    (f"sweep {NET} --l1 ''", "--l1 has no values", "--l1 VALUE,VALUE"),
    (f"sweep {NET} --l1 64k --jobs 0", "0 is not a number of processes", "at least 1"),
    (f"sweep {NET} zoo:nothing --l1 64k", "no network 'nothing'", "one of digits"),
    ("diff folder folder", "Is a directory", "saved as .json"),
    (f"generate {NET}", "no decoding step", "caches of keys and values"),
    ("generate zoo:microllama --prompt 'a b'", "'a b' is no token id", "72,101,108"),
    ("targets new class --out new", "a SoC cannot be called that", "no keyword"),
    ("completion tcsh", "'tcsh' is not one of", "'bash'"),
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    (tmp_path / "text.tflite").write_text("no model at all, but some words")
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "broken.json").write_text("{")
    np.savez(tmp_path / "names.npz", image=np.zeros((1, 640), np.int8))
    np.save(tmp_path / "float.npy", np.zeros((1, 640), np.float32))
    np.save(tmp_path / "shape.npy", np.zeros((1, 5), np.int8))
    (tmp_path / "list.json").write_text("[1, 2]")
    os.mkfifo(tmp_path / "pipe")
    np.savez(tmp_path / "two.npz", input=np.zeros((1, 640), np.int8), other=np.zeros(3))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "eight.npy", np.zeros((8, 640), np.int8))
    np.save(tmp_path / "three.npy", np.zeros(3, np.int64))
    np.save(tmp_path / "real.npy", np.zeros(8, np.float32))
    np.save(tmp_path / "large.npy", np.full(8, 640))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.rotating(20)
@pytest.mark.parametrize(("line", "what", "to_do"), MISTAKES, ids=[entry[0] for entry in MISTAKES])
def test_a_mistake_is_answered_before_anything_is_planned(
    line: str,
    what: str,
    to_do: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def planned(*_: Any, **__: Any) -> None:
        pytest.fail("the network was planned before the mistake was answered")

    monkeypatch.setattr(htvm.placement.plan, "place", planned)
    before = {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}
    assert main(shlex.split(line)) == 2
    shown = capsys.readouterr()
    said = " ".join(shown.err.split())
    assert shown.out == "" and "Traceback" not in said
    assert what in said and to_do in said
    assert {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")} == before
