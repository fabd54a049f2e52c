"""Bulk copies that the CPU device refuses in one line each: what sm_100 added, other blocks of a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machine.test_execution import HEAD, launch

KERNEL = """
.visible .entry k(.param .u64 p) {{
  .shared .align 128 .b8 s[512]; .shared .align 8 .b64 bar;
  .reg .u32 %a, %m, %n; .reg .u64 %g; .reg .b16 %h;
  ld.param.u64 %g, [p]; mov.u32 %a, s; mov.u32 %m, bar; mov.u32 %n, 16; mov.u16 %h, 3;
  mbarrier.init.shared.b64 [%m], 1;
  {statement}
  ret;
}}
"""


def status_of(statement: str, folder: Path) -> str:
    status, lines = launch(folder, HEAD + KERNEL.format(statement=statement), "buf=512", block="1")
    return "\n".join([*lines, status])


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%g], [%a], %n, %h;", ".cp_mask needs sm_100"),
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob"
            " [%a], [%g], %n, %n, %n, [%m];",
            ".ignore_oob needs sm_100",
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
            " [%a], [%g, {%n, %n, %n, %n, %n}], [%m];",
            ".tile::gather4 needs sm_100",
        ),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%g], [%a], %n;", "f32"),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
            " [%a], [%g], %n, [%m], %h;",
            "clusters of more than one block are not supported",
        ),
        ("mapa.shared::cluster.u32 %a, %a, %n;", "clusters of more than one block are not supported"),
    ],
)
def test_a_form_is_refused_by_name(statement: str, wanted: str, tmp_path: Path) -> None:
    """Fault: a form that runs as if it said something else, or an end without a reason."""
    assert wanted in status_of(statement, tmp_path)


def test_the_blocks_own_shared_memory_may_be_addressed(tmp_path: Path) -> None:
    """Fault: a cluster of one block that multicasts to itself is refused."""
    statement = (
        "mov.u32 %n, 0; mapa.shared::cluster.u32 %a, %a, %n; mov.u32 %n, 16; mov.u16 %h, 1;"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%a], [%g], %n, [%m], %h;"
    )
    assert status_of(statement, tmp_path).endswith("status: ok")
