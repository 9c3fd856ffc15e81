"""Networks of torch for a target: quantizers of its arithmetic, and training that equals the chip.

::

    import htvm.torch
    prepared = htvm.torch.prepare(net, (x,), "diana.digital", training=True)
    ...                                         # the usual loop of training
    htvm.torch.freeze_scales(prepared)          # before the last epochs
    converted = htvm.torch.convert(prepared)    # a module: its accuracy is the chip's
    module = htvm.build(converted, "diana.digital")

It needs the extra ``torch``; `import htvm` does not load it.
"""

from __future__ import annotations

from htvm.torch.packages import check_packages

check_packages()

from htvm.torch.quantizer import Quantizer  # noqa: E402
from htvm.torch.training import convert, export, freeze_scales, prepare  # noqa: E402

__all__ = ["Quantizer", "convert", "export", "freeze_scales", "prepare"]
