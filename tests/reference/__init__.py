"""Independent definitions of what the product computes, and tests of these.

Every module here defines something once more, from its specification: operators, layers, an
instruction set, an accelerator.  They share no code with the product.  They read its records (a
layer's fields, a step of a schedule) and nothing that computes: `test_independence.py` sees to
that.
"""
