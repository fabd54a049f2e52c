"""Calls on the machine itself, by PTX that nvcc does not write: lists of targets, register parameters.

Each kernel writes what it computed; the expected values are worked out by hand.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.machine.test_execution import HEAD, PROLOGUE, launch, values

FUNCTIONS = """
.func (.param .b32 r) twice(.param .b32 a)
{ .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, %x; st.param.b32 [r], %x; ret; }
.func (.param .b32 r) next(.param .b32 a)
{ .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, 1; st.param.b32 [r], %x; ret; }
.func (.param .b32 r) outer(.param .b64 f, .param .b32 a) {
  .reg .b32 %x; .reg .b64 %f; ld.param.b64 %f, [f]; ld.param.b32 %x, [a];
  { .param .b32 i; .param .b32 o; st.param.b32 [i], %x;
    one: .callprototype (.param .b32 _) _ (.param .b32 _); call (o), %f, (i), one; ld.param.b32 %x, [o]; }
  st.param.b32 [r], %x; ret; }
.global .align 8 .u64 table[2] = {twice, next};
"""
CALL = """
  { .param .b32 i; .param .b32 o; st.param.b32 [i], %t;
    form: FORM; call (o), %d1, (i), form; ld.param.b32 %r5, [o]; }
"""
DIRECT = """
  { .param .b32 i; .param .b32 o; st.param.b32 [i], %t; call (o), NAME, (i); ld.param.b32 %r5, [o]; }
"""
PROTOTYPE = ".callprototype (.param .b32 _) _ (.param .b32 _)"


def call(form: str) -> str:
    return CALL.replace("FORM", form)


# The function whose address is in %d1: twice in even lanes, next in odd ones.
PICK = """
  and.b32 %r2, %t, 1; mul.wide.u32 %d0, %r2, 8; mov.u64 %d2, table; add.u64 %d0, %d0, %d2;
  ld.global.u64 %d1, [%d0];
"""
STORE = "st.global.u32 [%o], %r5;"
PICKED = [k + 1 if k & 1 else 2 * k for k in range(32)]


@pytest.mark.parametrize("form", [PROTOTYPE, ".calltargets twice, next", PROTOTYPE + " .noreturn"])
def test_lanes_go_to_functions_of_their_own(form: str, tmp_path: Path) -> None:
    """Fault: lanes that run another lane's target, or lose their value on the way back."""
    assert values(tmp_path, PICK + call(form) + STORE, 32, functions=FUNCTIONS) == PICKED


def test_lanes_meet_behind_a_call_by_address(tmp_path: Path) -> None:
    """Fault: groups that stay apart after they have returned."""
    count = "activemask.b32 %r6; popc.b32 %r6, %r6; mad.lo.u32 %r5, %r6, 1000, %r5;"
    body = PICK + call(PROTOTYPE) + count + STORE
    assert values(tmp_path, body, 32, functions=FUNCTIONS) == [32000 + value for value in PICKED]


def test_lanes_that_a_predicate_keeps_from_the_call(tmp_path: Path) -> None:
    """Fault: a lane that takes part in a call from which its predicate keeps it, or is lost."""
    guarded = call(PROTOTYPE).replace("call (o)", "@%p1 call (o)").replace("ld.param", "@%p1 ld.param")
    body = PICK + "mov.u32 %r5, 7; setp.gt.u32 %p1, %t, 20;" + guarded + STORE
    assert values(tmp_path, body, 32, functions=FUNCTIONS) == [7] * 21 + PICKED[21:]


def test_an_address_goes_through_a_called_function(tmp_path: Path) -> None:
    """Fault: a call by address inside a function fails if only its caller knows the target."""
    inner = (
        "{ .param .b64 f; .param .b32 i; .param .b32 o; st.param.b64 [f], %d1; st.param.b32 [i], %t;"
        " call (o), outer, (f, i); ld.param.b32 %r5, [o]; }"
    )
    assert values(tmp_path, PICK + inner + STORE, 32, functions=FUNCTIONS) == PICKED


def test_another_name_of_a_function(tmp_path: Path) -> None:
    """Fault: .alias, a second name, cannot be called by name or by address."""
    functions = FUNCTIONS + ".func (.param .b32 r) other(.param .b32 a);\n.alias other, next;\n"
    for body in (DIRECT.replace("NAME", "other"), "mov.u64 %d1, other;" + call(PROTOTYPE)):
        assert values(tmp_path, body + STORE, 32, functions=functions) == [k + 1 for k in range(32)]


def test_registers_and_constants_as_arguments(tmp_path: Path) -> None:
    """Fault: a parameter in a register of some width, or a constant, is passed wrongly."""
    functions = """
.func (.reg .b32 low, .reg .b64 high) parts(.reg .b64 x, .reg .b16 y, .reg .b32 z)
{ .reg .b32 %a, %b; mov.b64 {%a, %b}, x;
  cvt.u32.u16 low, y; add.u32 low, low, %b; add.u32 low, low, z; cvt.u64.u32 high, %a; ret; }
.func (.param .b32 r) wide(.param .b64 a, .param .b32 b)
{ .reg .b64 %x; .reg .b32 %y, %z; ld.param.b64 %x, [a]; shr.u64 %x, %x, 32; cvt.u32.u64 %y, %x;
  ld.param.b32 %z, [b]; add.u32 %y, %y, %z; st.param.b32 [r], %y; ret; }
"""
    body = """
      .reg .b16 %h; mov.b64 %d1, {%t, 5}; cvt.u16.u32 %h, %t; call (%r5, %d2), parts, (%d1, %h, 100);
      cvt.u32.u64 %r6, %d2; mad.lo.u32 %r5, %r6, 1000, %r5;
      { .param .b32 o; call (o), wide, (0x700000001, 3); ld.param.b32 %r6, [o]; }
      mad.lo.u32 %r5, %r6, 100000, %r5;
    """
    expected = [1000000 + 1000 * k + k + 105 for k in range(32)]
    assert values(tmp_path, body + STORE, 32, functions=functions) == expected


INVALID = {
    "null": ("mov.u64 %d1, 0;" + call(PROTOTYPE), "the address is null"),
    "data": ("mov.u64 %d1, %b;" + call(PROTOTYPE), "is one of data"),
    "beside a function": ("mov.u64 %d1, next; add.u64 %d1, %d1, 4;" + call(PROTOTYPE), "lies in no function"),
    "no target of the list": ("mov.u64 %d1, next;" + call(".calltargets twice"), "not among the targets"),
    "other parameters": ("mov.u64 %d1, outer;" + call(PROTOTYPE), "takes or returns other things"),
    "in one lane": (
        PICK + "setp.eq.u32 %p1, %t, 9; @%p1 mov.u64 %d1, 12345;" + call(PROTOTYPE),
        "thread (9,0,0)",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_a_call_of_a_non_function_ends_the_launch(case: str, tmp_path: Path) -> None:
    """Fault: a crash, or a jump to some other function."""
    body, words = INVALID[case]
    status, _ = launch(tmp_path, HEAD + FUNCTIONS + PROLOGUE + body + "ret; }", "buf=256")
    assert status.startswith("status: invalid_call"), status
    assert words in status


BAD_TEXTS = {
    "call (o), %d1, (i);": "prototype or a list of targets",
    "call (o), %d1, (i), nowhere;": "unknown prototype",
    "mov.u64 %d1, k;": "address of kernel",
    "mov.u32 %r5, next;": "does not fit",
    "call k;": "call of kernel",
}


@pytest.mark.parametrize("statement", BAD_TEXTS)
def test_a_bad_call_is_refused_in_one_line(statement: str, tmp_path: Path) -> None:
    """Fault: a construct that runs as something else."""
    body = "{ .param .b32 i; .param .b32 o; " + statement + " } ret; }"
    status, _ = launch(tmp_path, HEAD + FUNCTIONS + PROLOGUE + body, "buf=256")
    assert status.startswith("status: invalid_ptx"), status
    assert BAD_TEXTS[statement] in status


def test_bytes_of_addresses_in_initial_values(tmp_path: Path) -> None:
    """Fault: a struct with a pointer among other members, which nvcc writes byte by byte, is misread."""
    masks = ", ".join(f"0xFF{'00' * k}(next)" for k in range(8))
    functions = FUNCTIONS + f".global .align 8 .b8 mixed[16] = {{9, 0, 0, 0, 0, 0, 0, 0, {masks}}};\n"
    body = "ld.global.u64 %d1, [mixed+8]; ld.global.u8 %r6, [mixed];" + call(PROTOTYPE)
    body += "mad.lo.u32 %r5, %r6, 100, %r5;"
    assert values(tmp_path, body + STORE, 32, functions=functions) == [900 + k + 1 for k in range(32)]


def test_memory_on_the_stack(tmp_path: Path) -> None:
    """Fault: arrays of lanes that overlap, or a restored stack that loses what was there before."""
    body = """
      add.u32 %r2, %t, 1; mul.wide.u32 %d0, %r2, 4; alloca.u64 %d1, %d0, 16; st.local.u32 [%d1], %t;
      mov.u32 %r3, 0;
      L: stacksave.u64 %d3; alloca.u64 %d2, 256; st.local.u32 [%d2+252], %r3; stackrestore.u64 %d3;
      add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 1000; @%p1 bra L;
      and.b64 %d4, %d1, 15; cvt.u32.u64 %r5, %d4; ld.local.u32 %r4, [%d1]; add.u32 %r5, %r5, %r4;
    """
    assert values(tmp_path, body + STORE, 32) == list(range(32))


@pytest.mark.parametrize("size", ["0x7fffffffffffffff", "%d0"])
def test_more_memory_than_the_stack_has(size: str, tmp_path: Path) -> None:
    """Fault: a size that runs over, or a loop that asks without end."""
    body = f"mov.u64 %d0, 64; L: alloca.u64 %d1, {size}, 16; bra L;"
    status, _ = launch(tmp_path, HEAD + PROLOGUE + body + "ret; }", "buf=4")
    assert status.startswith("status: stack_overflow"), status


def test_calls_without_arrays_end_as_well(tmp_path: Path) -> None:
    """Fault: a recursion that takes no memory of its own and would go on until the computer has none left."""
    functions = ".func f() { call.uni f; ret; }\n"
    status, _ = launch(tmp_path, HEAD + functions + PROLOGUE + "call.uni f; ret; }", "buf=4")
    assert status.startswith("status: stack_overflow"), status


def test_large_arrays_of_called_functions_need_no_limit(tmp_path: Path) -> None:
    """Fault: a chain of calls that is known before the launch, and takes more than the default stack."""
    functions = """
.func inner()
{ .local .align 4 .b8 room[30000]; .reg .b32 %x; mov.u32 %x, 1; st.local.u32 [room+29996], %x; ret; }
.func outer()
{ .local .align 4 .b8 room[20000]; .reg .b32 %x; mov.u32 %x, 1; st.local.u32 [room+19996], %x;
  call.uni inner; ret; }
"""
    body = "call.uni outer; mov.u32 %r5, 3;" + STORE
    assert values(tmp_path, body, 32, functions=functions) == [3] * 32


def chain_of_calls(rng: Random, count: int) -> tuple[str, list[tuple[int, int, int, int]]]:
    """Functions that call each other by address, as their value says, each with an array of its own.

    Of each: factor, addend, words of its array, and what it mixes into the result.
    """
    word = 1 << 32
    own = [
        (rng.randrange(word) | 1, rng.randrange(word), rng.randrange(1, 6), rng.randrange(word))
        for _ in range(count)
    ]
    text = "".join(f".func (.param .b32 r) f{k}(.param .b32 x, .param .b32 n);\n" for k in range(count))
    text += f".global .align 8 .u64 table[{count}] = {{{', '.join(f'f{k}' for k in range(count))}}};\n"
    for k, (factor, addend, words, mixed) in enumerate(own):
        text += f"""
.func (.param .b32 r) f{k}(.param .b32 x, .param .b32 n) {{
  .local .align 4 .b8 kept[{4 * words}]; .reg .b32 %x, %n, %y, %z; .reg .b64 %a, %f; .reg .pred %p;
  ld.param.b32 %x, [x]; ld.param.b32 %n, [n]; mad.lo.u32 %y, %x, {factor}, {addend};
  st.local.b32 [kept+{4 * words - 4}], %y; mov.u32 %z, %y; setp.eq.u32 %p, %n, 0; @%p bra DONE;
  shr.u32 %z, %y, 9; rem.u32 %z, %z, {count}; mul.wide.u32 %a, %z, 8; mov.u64 %f, table; add.u64 %a, %a, %f;
  ld.global.u64 %f, [%a]; sub.u32 %n, %n, 1;
  {{ .param .b32 i; .param .b32 j; .param .b32 o; st.param.b32 [i], %y; st.param.b32 [j], %n;
    P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);
    call (o), %f, (i, j), P; ld.param.b32 %z, [o]; }}
  DONE: ld.local.b32 %y, [kept+{4 * words - 4}]; add.u32 %z, %z, %y; xor.b32 %z, %z, {mixed};
  st.param.b32 [r], %z; ret; }}
"""
    return text, own


def computed(own: list[tuple[int, int, int, int]], k: int, x: int, n: int) -> int:
    factor, addend, _, mixed = own[k]
    y = (x * factor + addend) & 0xFFFFFFFF
    z = y if n == 0 else computed(own, (y >> 9) % len(own), y, n - 1)
    return ((z + y) & 0xFFFFFFFF) ^ mixed


@pytest.mark.parametrize("seed", range(8))
def test_random_chains_of_calls(seed: int, tmp_path: Path) -> None:
    """Fault: frames that lanes at different depths mix up, values lost on the way; or a false alarm."""
    rng = Random(seed)
    functions, own = chain_of_calls(rng, rng.randrange(2, 9))
    deepest = rng.randrange(3, 13)
    body = f"""
      rem.u32 %r2, %t, {deepest};
      {{ .param .b32 i; .param .b32 j; .param .b32 o; st.param.b32 [i], %t; st.param.b32 [j], %r2;
        call (o), f0, (i, j); ld.param.b32 %r5, [o]; }}
    """
    text = HEAD + functions + PROLOGUE + body + STORE + " ret; }"
    status, lines = launch(tmp_path, text, "buf=256", "dump=0:u32", f"seed={seed}", "tools=all", block="64")
    assert status == "status: ok", status
    said = [line.removeprefix("========= ").split()[0] for line in lines if line.startswith("=========")]
    assert said == ["CPU", "PTX", "Work:"], "\n".join(lines)  # and no finding between them
    assert [int(word) for word in lines[0].split()] == [computed(own, 0, t, t % deepest) for t in range(64)]
