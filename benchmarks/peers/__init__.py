"""Other compilers and runtimes on the same files: ``python -m benchmarks.peers``."""
