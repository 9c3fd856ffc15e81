"""Our accelerator's cycles beside those of two estimators: ``python -m benchmarks.estimators``."""
