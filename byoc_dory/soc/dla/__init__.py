"""A parametrised accelerator that executes command streams (Sponner et al., TinyML Symposium 2021).

`isa` is the instruction set as data; `design` the numbers of one accelerator; `region_file` a
region as portable JSON; `memory`, `tiles` and `assemble` make its command stream, in integers
only, so that a device can do the same at start-up; `accelerator` is the accelerator as code
generation sees it.
"""
