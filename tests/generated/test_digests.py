"""The generated C of whole networks is what it was, byte for byte.

The goldens beside this show what changed; this shows that nothing else did.
"""

from __future__ import annotations

import pytest

from tests.generated.digests import (
    BUILDS,
    EVERY_DAY,
    INPUT,
    Build,
    digests_of,
    known_digests,
    write_digests,
)

_UPDATE = 'pytest tests/generated -m "slow or not slow" --update-golden'


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(build, id=str(build), marks=[] if build.everyday else [pytest.mark.slow])
        for build in BUILDS
    ],
)
def test_generated_files(build: Build, update_golden: bool) -> None:
    found = digests_of(build)
    known = known_digests()
    if update_golden:
        write_digests({**known, str(build): found})
        return
    wanted = known.get(str(build), {})
    if wanted and wanted.get(INPUT) != found.get(INPUT):
        pytest.skip(
            f"{build.model} is quantized by this machine's onnxruntime, to other scales than where "
            "the digests were made"
        )
    changed = sorted(
        name for name in {*wanted, *found} if wanted.get(name) != found.get(name)
    )  # fmt: skip
    if changed:
        pytest.fail(
            f"{build}: the generated {', '.join(changed)} changed. If that is meant: {_UPDATE}",
            pytrace=False,
        )


def test_everyday_builds_exist() -> None:
    assert {str(build) for build in BUILDS if build.everyday} == EVERY_DAY


def test_every_digest_belongs_to_a_build() -> None:
    assert set(known_digests()) == {str(build) for build in BUILDS}
