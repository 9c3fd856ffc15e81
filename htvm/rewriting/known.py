"""The exact rewrites, in the order in which equally quick ones are preferred."""

from __future__ import annotations

from htvm.rewriting.groups import AllChannels, ByGroup
from htvm.rewriting.rewrite import Rewrite
from htvm.rewriting.space_to_depth import SpaceToDepth
from htvm.rewriting.window import SingleRow, SplitPadding
from htvm.rewriting.zero_taps import Dilation, LargerKernel

REWRITES: tuple[Rewrite, ...] = (
    SingleRow(),
    LargerKernel(),
    Dilation(),
    SplitPadding(),
    SpaceToDepth(),
    AllChannels(),
    ByGroup(),
)
