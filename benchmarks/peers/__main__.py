"""``python -m benchmarks.peers``: installs the peers, asks them, and writes the page.

What has been answered is kept beside the page's data, so that ``--only`` updates single peers.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import boards
from benchmarks.made_of import RowSource, record
from benchmarks.peers.answer import Survey
from benchmarks.peers.cases import cases
from benchmarks.peers.known import PEERS
from benchmarks.peers.survey import ROOT, surveyed
from benchmarks.peers.table import page

__all__ = ["main", "made_of"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the survey."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument(
        "--models",
        type=Path,
        default=ROOT.parent / "shared" / "models" / "tflite",
        help="folder of MLPerf Tiny's files, each in a folder with its golden",
    )
    parser.add_argument("--only", action="append", default=[], help="a peer to ask; repeatable")
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "peers")
    parser.add_argument("--data", type=Path, default=ROOT / "docs" / "results" / "peers.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "peers.md")
    options = parser.parse_args(arguments)
    unknown = set(options.only) - {peer.name for peer in PEERS}
    if unknown:
        known = ", ".join(peer.name for peer in PEERS)
        parser.error(f"unknown peers: {', '.join(sorted(unknown))}; known: {known}")
    kept = _kept(options.data) if options.only else {}
    with tempfile.TemporaryDirectory() as folder:
        asked = list(cases(options.models, Path(folder)))
        for peer in PEERS:
            if not options.only or peer.name in options.only:
                kept[peer.name] = surveyed(peer, asked, options.environments, _say)
    surveys = [kept[peer.name] for peer in PEERS if peer.name in kept]
    options.data.write_text(json.dumps([each.data() for each in surveys], indent=1) + "\n")
    options.page.write_text(page(PEERS, asked, surveys))
    record("peers", made_of())
    return 0


def made_of() -> Iterator[RowSource]:
    """Our programs of the TFLite files; onnxruntime's file differs from machine to machine."""
    return boards.made_of(("generic.cpu",), ())


def _kept(path: Path) -> dict[str, Survey]:
    if not path.is_file():
        return {}
    surveys = [Survey.of(data) for data in json.loads(path.read_text())]
    return {survey.peer: survey for survey in surveys}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
