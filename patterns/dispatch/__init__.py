"""Which operator runs where, and why; groups of operators that an accelerator takes together."""
