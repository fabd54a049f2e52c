"""The production kernels are one file each; what two of them repeat must stay the same in both."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from verify.system.resources import resource_folder

_FUNCTION = re.compile(
    r"^(?:template <[^>]*>\n)?"
    r"(?:__device__ |constexpr |bool |int )[^;={]*?(\w+)\([^{;]*\) "
    r"\{.*?\n?\}$",
    re.MULTILINE | re.DOTALL,
)

SHARED = (
    "permute_bytes",
    "shared_address",
    "copy_async",
    "commit_copies",
    "wait_copies",
    "mma",
    "halves_to_floats",
    "round_to_bf16",
    "store",
    "aligned",
    "countable",
    "rows_per_block",
)
"""What both matvec kernels do alike. No header: a kernel is taken into another project as one file."""


def functions(kernel: str) -> dict[str, list[str]]:
    """Texts of a source's functions by name, without the kernel's own prefix."""
    text = (resource_folder("cuda") / f"{kernel}_matvec.cu").read_text(encoding="utf-8")
    text = text.replace(f"{kernel}_", "").replace(f"{kernel.upper()}_", "")
    found = defaultdict(list)
    for match in _FUNCTION.finditer(text):
        found[match[1]].append(match[0])
    return found


@pytest.mark.parametrize("name", SHARED)
def test_code_shared_by_both_matvec_kernels_is_identical(name: str) -> None:
    """Fault: a fault is fixed in one kernel and left in the other."""
    ours, theirs = functions("fp4")[name], functions("fp8")[name]
    assert ours
    assert ours == theirs
