"""Programs that print what the runtime answers, a line a call. Standard library only."""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Run:
    """One program with its arguments."""

    name: str
    arguments: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return "-".join((self.name, *self.arguments))

    @property
    def source(self) -> Path:
        return HERE / f"{self.name}.cu"


# sticky: the kernel writes to an illegal address, traps, writes to a misaligned address.
# formats: which kernel prints.
RUNS = (
    Run("launches"),
    Run("attributes"),
    Run("sticky", ("0",)),
    Run("sticky", ("1",)),
    Run("sticky", ("2",)),
    Run("graphs"),
    Run("calls"),
    *(Run("formats", (str(k),)) for k in range(12)),
)
