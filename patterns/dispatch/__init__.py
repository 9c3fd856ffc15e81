"""Which operator runs where, and why; operators that an accelerator takes together."""
