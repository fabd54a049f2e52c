"""Undefined bits through registers, instruction by instruction, on the machine itself.

Each case computes ``%r`` of ``%u``, a word of shared memory that nobody wrote, and branches by it. A case
that must be found catches a rule that calls a bit defined which is not; one that must stay silent, a rule
that calls undefined what does not depend on the word: a false alarm in right code.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machine.test_execution import HEAD, launch

FUNCTIONS = """
.func (.param .b32 out) pass(.param .b32 a, .param .b32 b) {
  .reg .u32 %x, %y;
  ld.param.u32 %x, [a]; ld.param.u32 %y, [b]; and.b32 %y, %y, 255; st.param.b32 [out], %x; ret;
}
.func (.reg .b32 given) pick(.reg .b32 a, .reg .b32 b) { and.b32 b, b, 255; mov.b32 given, a; ret; }
"""
KERNEL = """
.visible .entry k(.param .u64 p) {{
  .shared .align 16 .b8 s[512]; .shared .align 16 .b8 z[512]; .local .align 16 .b8 l[32];
  .reg .u32 %u, %r, %t, %never, %a<10>; .reg .u64 %d<6>; .reg .b16 %h<6>; .reg .f32 %f<6>;
  .reg .pred %p<6>, %q, %open;
  mov.u32 %t, %tid.x; shl.b32 %a9, %t, 4;
  mov.u32 %a8, z; add.u32 %a8, %a8, %a9; mov.u32 %a7, s; add.u32 %a7, %a7, %a9;
  st.shared.v4.u32 [%a8], {{%t, %t, %t, %t}}; setp.eq.u32 %p0, %t, 0; setp.ne.u32 %p5, %t, %t;
  ld.shared.u32 %u, [s];
  {body}
  setp.ne.u32 %q, %r, 0; @%q bra DONE; st.shared.u32 [z], %t;
DONE: ret;
}}
"""

FOUND = {
    "move": "mov.b32 %r, %u;",
    "and": "and.b32 %r, %u, 256;",
    "or": "or.b32 %r, %u, 1; and.b32 %r, %r, 2;",
    "xor_with_itself": "xor.b32 %r, %u, %u;",
    "not": "not.b32 %r, %u;",
    "shift_left": "shl.b32 %r, %u, 31;",
    "shift_right": "shr.u32 %r, %u, 31;",
    "shift_right_of_a_sign": "and.b32 %a0, %u, 0x80000000; shr.s32 %r, %a0, 31; and.b32 %r, %r, 1;",
    "shift_by_undefined": "mov.u32 %a0, 8; shl.b32 %r, %a0, %u;",
    "funnel_shift": "shf.l.wrap.b32 %r, %u, %t, 8; and.b32 %r, %r, 255;",
    "bytes": "prmt.b32 %r, %u, 0, 0x4443;",
    "bytes_of_a_sign": "prmt.b32 %r, %u, 0, 0x444b; and.b32 %r, %r, 1;",
    "insert": "bfi.b32 %a0, %t, %u, 0, 16; shr.u32 %r, %a0, 16;",
    "insert_undefined": "bfi.b32 %a0, %u, %t, 8, 4; bfe.u32 %r, %a0, 11, 1;",
    "extract": "bfe.u32 %r, %u, 7, 1;",
    "extract_sign": "and.b32 %a0, %u, 0x800; bfe.s32 %r, %a0, 8, 4; shr.u32 %r, %r, 31;",
    "table": "mov.u32 %a0, 3; mov.u32 %a1, 5; lop3.b32 %r, %u, %a0, %a1, 0xca; and.b32 %r, %r, 2;",
    "reverse": "brev.b32 %a0, %u; shr.u32 %r, %a0, 31;",
    "count_bits": "popc.b32 %r, %u;",
    "carry": "and.b32 %a0, %u, 1; add.u32 %a0, %a0, 0x7fffffff; shr.u32 %r, %a0, 31;",
    "product": "shl.b32 %a0, %u, 16; mul.lo.u32 %a0, %a0, 3; shr.u32 %r, %a0, 16;",
    "product_with_zero": "mul.lo.u32 %r, %u, 0;",
    "wide_product": "mul.wide.u32 %d0, %u, 2; shr.u64 %d0, %d0, 32; cvt.u32.u64 %r, %d0;",
    "carry_chain": "and.b32 %a0, %u, 1; add.cc.u32 %a1, %a0, -1; addc.u32 %r, 0, 0;",
    "fused": "mov.b32 %f0, %u; fma.rn.f32 %f1, %f0, 0f00000000, 0f3f800000; mov.b32 %r, %f1;",
    "convert_sign": "and.b32 %a0, %u, 0x8000; cvt.u16.u32 %h0, %a0; cvt.s32.s16 %a1, %h0;"
    " shr.u32 %r, %a1, 31;",
    "convert_to_float": "and.b32 %a0, %u, 1; cvt.rn.f32.u32 %f0, %a0; mov.b32 %r, %f0;",
    "pair_of_words": "mov.b64 %d0, {%t, %u}; mov.b64 {%a0, %r}, %d0;",
    "pair_of_halves": "prmt.b32 %a0, %t, %u, 0x7610; add.f16x2 %a1, %a0, %a0; shr.u32 %r, %a1, 16;",
    "pack_halves": "mov.b32 %f0, %u; cvt.rn.f16x2.f32 %a0, %f0, 0f3f800000; shr.u32 %r, %a0, 16;",
    "selected": "selp.u32 %r, %u, %t, %p0;",
    "selected_by_undefined": "setp.lt.u32 %p1, %u, 7; selp.u32 %r, 1, 2, %p1;",
    "selected_by_sign": "slct.u32.s32 %r, 1, 2, %u;",
    "compared": "and.b32 %a0, %u, 15; setp.lt.u32 %p1, %a0, 8; selp.u32 %r, 1, 0, %p1;",
    "compared_equal": "or.b32 %a0, %u, 256; setp.eq.u32 %p1, %a0, 257; selp.u32 %r, 1, 0, %p1;",
    "set": "set.eq.u32.u32 %r, %u, 7;",
    "both_predicates": "setp.lt.u32 %p1, %u, 7; and.pred %p2, %p1, %p0; selp.u32 %r, 1, 0, %p2;",
    "either_predicate": "setp.lt.u32 %p1, %u, 7; or.pred %p2, %p1, %p5; selp.u32 %r, 1, 0, %p2;",
    "combined_comparison": "setp.lt.u32 %p1, %u, 7; setp.eq.and.u32 %p2, %t, %t, %p1;"
    " selp.u32 %r, 1, 0, %p2;",
    "guarded": "mov.u32 %r, 0; setp.lt.u32 %p1, %u, 7; @%p1 mov.u32 %r, 1;",
    "branch": "mov.u32 %r, 0; setp.lt.u32 %p1, %u, 7; @%p1 bra DONE;",
    "indexed_branch": "and.b32 %a0, %u, 1; mov.u32 %r, 0; W: .branchtargets X, DONE; brx.idx %a0, W; X:",
    "address": "and.b32 %a0, %u, 12; add.u32 %a0, %a0, %a8; ld.shared.u32 %r, [%a0];",
    "shuffle": "selp.u32 %a0, %t, %u, %p0; shfl.sync.idx.b32 %r, %a0, 1, 31, -1;",
    "shuffle_lane": "and.b32 %a0, %u, 31; shfl.sync.idx.b32 %r, %t, %a0, 31, -1;",
    "ballot": "selp.u32 %a0, 1, %u, %p0; setp.ne.u32 %p1, %a0, 0; vote.sync.ballot.b32 %a1, %p1, -1;"
    " and.b32 %r, %a1, 2;",
    "vote": "selp.u32 %a0, 0, %u, %p0; setp.ne.u32 %p1, %a0, 0; vote.sync.any.pred %p2, %p1, -1;"
    " selp.u32 %r, 1, 0, %p2;",
    "match": "match.any.sync.b32 %r, %u, -1;",
    "reduce": "and.b32 %a0, %u, 1; redux.sync.add.u32 %r, %a0, -1;",
    "members": "or.b32 %a0, %u, -2; shfl.sync.idx.b32 %r, %t, 0, 31, %a0;",
    "through_shared": "st.shared.u32 [%a8], %u; ld.shared.u32 %r, [%a8];",
    "through_shared_bytes": "st.shared.v2.u32 [%a8], {%t, %u}; ld.shared.u8 %r, [%a8+5];",
    "through_local": "st.local.u32 [l], %u; ld.local.u32 %r, [l];",
    "through_a_call": "{ .param .b32 o; .param .b32 a; .param .b32 b; st.param.b32 [a], %u;"
    " st.param.b32 [b], %t;"
    " call (o), pass, (a, b); ld.param.b32 %r, [o]; }",
    "through_a_call_by_address": "{ .param .b32 o; .param .b32 a; .param .b32 b; st.param.b32 [a], %u;"
    " st.param.b32 [b], %t; mov.u64 %d0, pass; C: .calltargets pass;"
    " call (o), %d0, (a, b), C; ld.param.b32 %r, [o]; }",
    "through_a_call_in_registers": "call (%r), pick, (%u, %t);",
    "sign_extending_load": "st.shared.v2.u16 [%a8], {%h0, %h1}; and.b32 %a0, %u, 128;"
    " st.shared.u8 [%a8], %a0;"
    " ld.shared.s8 %a1, [%a8]; shr.u32 %r, %a1, 31;",
    "atomic_gives_what_was_there": "atom.shared.exch.b32 %r, [%a7], %t;",
    "atomic_sum": "atom.shared.add.u32 %a0, [%a7], 1; ld.shared.u32 %r, [%a7];",
    "atomic_operand": "atom.shared.exch.b32 %a0, [%a8], %u; ld.shared.u32 %r, [%a8];",
    "matrix_row": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%a0}, [%a7]; mov.u32 %r, %a0;",
    "matrix_transposed": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%a0}, [%a8];"
    " selp.u32 %a0, %a0, %u, %p0;"
    " movmatrix.sync.aligned.m8n8.trans.b16 %r, %a0;",
    "unwritten_register": "mov.b32 %r, %never;",
    "unwritten_in_one_way": "mov.u32 %r, 0; setp.lt.u32 %p1, %t, 16; @%p1 bra A; mov.u32 %never, 5;"
    " A: mov.u32 %r, %never;",
    "unwritten_predicate": "mov.u32 %r, 0; @%open bra DONE;",
    "unwritten_in_a_loop": "mov.u32 %a0, 0; L: add.u32 %never, %never, %a0; add.u32 %a0, %a0, 1;"
    " setp.lt.u32 %p1, %a0, 4; @%p1 bra L; mov.u32 %r, %never;",
}

SILENT = {
    "dropped": "mov.u32 %r, %t;",
    "and": "and.b32 %r, %u, 0;",
    "masked": "and.b32 %a0, %u, 0xffff; shr.u32 %r, %a0, 16;",
    "or": "or.b32 %r, %u, -1;",
    "shifted_out": "shl.b32 %r, %u, 32;",
    "shift_keeps_sign": "and.b32 %a0, %u, 0x7fffffff; shr.s32 %r, %a0, 31;",
    "funnel_shift": "shf.l.wrap.b32 %a0, %u, %t, 8; shr.u32 %r, %a0, 8;",
    "bytes": "prmt.b32 %r, %u, %t, 0x5454;",
    "insert": "bfi.b32 %a0, %t, %u, 0, 16; and.b32 %r, %a0, 0xffff;",
    "extract": "and.b32 %a0, %u, 0xff; bfe.u32 %r, %a0, 8, 8;",
    "extract_sign": "and.b32 %a0, %u, 0x7ff; bfe.s32 %a1, %a0, 8, 4; shr.u32 %r, %a1, 31;",
    "table_without_choice": "mov.u32 %a0, 3; lop3.b32 %r, %u, %a0, %a0, 0xca;",
    "reverse": "and.b32 %a0, %u, 0xff; brev.b32 %a0, %a0; and.b32 %r, %a0, 0xff;",
    "carry": "shl.b32 %a0, %u, 16; add.u32 %a0, %a0, %t; and.b32 %r, %a0, 0xffff;",
    "product": "shl.b32 %a0, %u, 16; mad.lo.u32 %a0, %a0, 3, %t; and.b32 %r, %a0, 0xffff;",
    "carry_chain": "add.cc.u32 %a1, %t, -1; addc.u32 %r, 0, 0; add.cc.u32 %a1, %u, 1; addc.u32 %a2, 0, 0;",
    "convert": "shl.b32 %a0, %u, 16; cvt.u16.u32 %h0, %a0; cvt.u32.u16 %r, %h0;",
    "convert_wide": "cvt.u64.u32 %d0, %u; shr.u64 %d0, %d0, 32; cvt.u32.u64 %r, %d0;",
    "pair_of_words": "mov.b64 %d0, {%t, %u}; mov.b64 {%r, %a0}, %d0;",
    "pair_of_halves": "prmt.b32 %a0, %t, %u, 0x7610; add.f16x2 %a1, %a0, %a0; and.b32 %r, %a1, 0xffff;",
    "pack_halves": "mov.b32 %f0, %u; cvt.rn.f16x2.f32 %a0, %f0, 0f3f800000; and.b32 %r, %a0, 0xffff;",
    "selected": "selp.u32 %r, %t, %u, %p0; selp.u32 %r, %r, 0, %p0;",
    "selected_alike": "setp.lt.u32 %p1, %u, 7; selp.u32 %r, %t, %t, %p1;",
    "compared": "and.b32 %a0, %u, 15; setp.lt.u32 %p1, %a0, 16; selp.u32 %r, 1, 0, %p1;",
    "compared_sign": "or.b32 %a0, %u, 0x80000000; setp.lt.s32 %p1, %a0, 0; selp.u32 %r, 1, 0, %p1;",
    "compared_equal": "or.b32 %a0, %u, 256; setp.eq.u32 %p1, %a0, 0; selp.u32 %r, 1, 0, %p1;",
    "both_predicates": "setp.lt.u32 %p1, %u, 7; and.pred %p2, %p1, %p5; selp.u32 %r, 1, 0, %p2;",
    "either_predicate": "setp.lt.u32 %p1, %u, 7; not.pred %p3, %p5; or.pred %p2, %p1, %p3;"
    " selp.u32 %r, 1, 0, %p2;",
    "combined_comparison": "setp.lt.u32 %p1, %u, 7; setp.ne.and.u32 %p2, %t, %t, %p1;"
    " selp.u32 %r, 1, 0, %p2;",
    "overwritten": "mov.b32 %r, %u; mov.b32 %r, %t;",
    "shuffle": "selp.u32 %a0, %t, %u, %p0; shfl.sync.idx.b32 %r, %a0, 0, 31, -1;",
    "shuffle_down_and_drop": "selp.u32 %a0, %t, %u, %p0; shfl.sync.down.b32 %a1, %a0, 1, 31, -1;"
    " selp.u32 %r, %t, 0, %p0;",
    "ballot": "selp.u32 %a0, 1, %u, %p0; setp.ne.u32 %p1, %a0, 0; vote.sync.ballot.b32 %a1, %p1, -1;"
    " and.b32 %r, %a1, 1;",
    "vote": "selp.u32 %a0, 1, %u, %p0; setp.ne.u32 %p1, %a0, 0; vote.sync.any.pred %p2, %p1, -1;"
    " selp.u32 %r, 1, 0, %p2;",
    "reduce": "and.b32 %a0, %u, 1; redux.sync.or.b32 %a1, %a0, -1; and.b32 %r, %a1, 2;",
    "fields_in_memory": "ld.shared.u8 %a0, [%a7]; bfi.b32 %a0, %t, %a0, 0, 4; st.shared.u8 [%a7], %a0;"
    " ld.shared.u8 %a1, [%a7]; bfi.b32 %a1, %t, %a1, 4, 4; st.shared.u8 [%a7], %a1;"
    " ld.shared.u8 %r, [%a7];",
    "fields_in_local_memory": "ld.local.u8 %a0, [l]; bfi.b32 %a0, %t, %a0, 0, 4; st.local.u8 [l], %a0;"
    " ld.local.u8 %a1, [l]; bfi.b32 %a1, %t, %a1, 4, 4; st.local.u8 [l], %a1; ld.local.u8 %r, [l];",
    "beside_in_shared": "st.shared.v2.u32 [%a8], {%t, %u}; ld.shared.u32 %r, [%a8];",
    "stored_again": "st.shared.u32 [%a8], %u; st.shared.u32 [%a8], %t; ld.shared.u32 %r, [%a8];",
    "beside_in_a_call": "{ .param .b32 o; .param .b32 a; .param .b32 b; st.param.b32 [a], %t;"
    " st.param.b32 [b], %u;"
    " call (o), pass, (a, b); ld.param.b32 %r, [o]; }",
    "beside_in_a_call_by_address": "{ .param .b32 o; .param .b32 a; .param .b32 b; st.param.b32 [a], %t;"
    " st.param.b32 [b], %u; mov.u64 %d0, pass; C: .calltargets pass;"
    " call (o), %d0, (a, b), C; ld.param.b32 %r, [o]; }",
    "beside_in_a_call_in_registers": "call (%r), pick, (%t, %u);",
    "atomic_exchange": "atom.shared.exch.b32 %a0, [%a7], %t; ld.shared.u32 %r, [%a7];",
    "atomic_exchange_of_one_word": "atom.shared.exch.b32 %a0, [s+256], %t; bar.warp.sync -1;"
    " ld.shared.u32 %r, [s+256];",
    "atomic_and": "atom.shared.and.b32 %a0, [%a7], 0; ld.shared.u32 %r, [%a7];",
    "atomic_or": "atom.shared.or.b32 %a0, [%a7], -1; ld.shared.u32 %r, [%a7];",
    "matrix_rows_that_were_written": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r}, [%a8];",
    "matrix_row_beside": "setp.lt.u32 %p1, %t, 1; @%p1 st.shared.v4.u32 [%a7], {%t, %t, %t, %t};"
    " ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%a0}, [%a7]; setp.lt.u32 %p2, %t, 4;"
    " selp.u32 %r, %a0, 0, %p2;",
    "unwritten_register_copied": "mov.b32 %a0, %never; mov.b64 %d0, {%a0, %t}; mov.b64 {%a1, %r}, %d0;",
    "written_in_both_ways": "setp.lt.u32 %p1, %t, 16; @%p1 mov.u32 %never, 4; @!%p1 mov.u32 %never, 5;"
    " mov.u32 %r, %never;",
    "written_where_it_is_read": "mov.u32 %r, 0; setp.lt.u32 %p1, %t, 16; @!%p1 bra A; mov.u32 %never, 5;"
    " A: add.u32 %a1, %t, 1;"
    " @!%p1 bra B; mov.u32 %r, %never; B:",
    "written_in_the_first_round": "mov.u32 %a0, 0; L: setp.eq.u32 %p2, %a0, 0; @%p2 mov.u32 %never, 1;"
    " add.u32 %never, %never, 1;"
    " add.u32 %a0, %a0, 1; setp.lt.u32 %p1, %a0, 4; @%p1 bra L; mov.u32 %r, %never;",
}


def findings(tmp_path: Path, body: str, grid: str = "1") -> list[str]:
    text = HEAD + FUNCTIONS + KERNEL.format(body=body)
    status, lines = launch(tmp_path, text, "buf=64", "tools=initcheck,synccheck", grid=grid)
    assert status == "status: ok", status
    return [line for line in lines if "Uninitialized" in line or "Shuffle reads" in line]


@pytest.mark.parametrize("case", FOUND)
def test_a_result_that_depends_on_an_undefined_bit_is_found(case: str, tmp_path: Path) -> None:
    assert findings(tmp_path, FOUND[case])


@pytest.mark.parametrize("case", SILENT)
def test_a_result_that_does_not_depend_on_an_undefined_bit_is_clean(case: str, tmp_path: Path) -> None:
    assert findings(tmp_path, SILENT[case]) == []


def test_report_names_where_the_value_was_read_and_what_it_decides(tmp_path: Path) -> None:
    """Fault: a finding at the branch alone, which says nothing of the memory that nobody wrote."""
    text = HEAD + FUNCTIONS + KERNEL.format(body="add.u32 %r, %u, 1;")
    _, lines = launch(tmp_path, text, "buf=64", "tools=initcheck")
    report = "\n".join(lines)
    assert "Uninitialized __shared__ memory read of size 4 bytes" in report
    assert report.index("ld.shared.u32 %u, [s]") < report.index("bra DONE")
    assert "a branch depends on them" in report
    assert report.count("Uninitialized") == 1


def test_one_undefined_word_is_reported_once(tmp_path: Path) -> None:
    """Fault: every branch after it is a finding of its own."""
    first = "mov.u32 %r, 0; setp.lt.u32 %p1, %u, 7; @%p1 bra A; mov.u32 %r, 0;"
    body = first + " A: setp.lt.u32 %p2, %u, 9; @%p2 bra DONE;"
    assert len(findings(tmp_path, body)) == 1
    other = "mov.u32 %r, 0; mov.u32 %a0, %ctaid.x; setp.gt.u32 %p3, %a0, 31; @%p3 bra A;"
    assert len(findings(tmp_path, other + body, grid="64")) == 1
