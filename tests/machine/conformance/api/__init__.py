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
# tensor_loads: swizzles, fills, strides and ranks, im2col; interleaves are refused by the CPU device.
# bulk_reductions: in global memory, in shared memory, by tensor maps.
RUNS = (
    Run("launches"),
    Run("attributes"),
    Run("sticky", ("0",)),
    Run("sticky", ("1",)),
    Run("sticky", ("2",)),
    Run("graphs"),
    Run("calls"),
    *(Run("formats", (str(k),)) for k in range(12)),
    Run("tensor_encode"),
    *(Run("tensor_loads", (str(k),)) for k in range(4)),
    *(Run("bulk_reductions", (str(k),)) for k in range(3)),
)
