"""`Decisions`: how often a network decides as labels say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Decisions:
    """Decisions on inputs with labels; a decision is the largest output (the first of equal ones).

    Attributes:
        samples: number of inputs.
        source: of these, decided by the source model as the label says.
        build: of these, decided by the build as the label says.
        same: of these, decided by both alike, rightly or not.
    """

    samples: int
    source: int
    build: int
    same: int

    @property
    def accuracy(self) -> float:
        """Top-1 accuracy of the build, 0 to 1."""
        return self.build / self.samples

    @property
    def source_accuracy(self) -> float:
        """Top-1 accuracy of the source model, 0 to 1."""
        return self.source / self.samples

    @property
    def words(self) -> str:
        """The accuracies and the agreement in a few words."""

        def share(number: int) -> str:
            return f"{100 * number / self.samples:.1f} %"

        return (
            f"{share(self.build)}, the source's {share(self.source)}, "
            f"same decision {share(self.same)}, on {self.samples:,} inputs"
        )

    def __str__(self) -> str:
        return f"accuracy (top-1): {self.words}"
