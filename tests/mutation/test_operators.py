"""Does each operator make just the faults that it names?"""

from __future__ import annotations

import pytest

from verify.mutation.edit import Edit, apply, changed_range, diff
from verify.mutation.operators.all import OPERATORS, mutants_by_operators
from verify.mutation.operators.code import Code

WRAPPERS = """
__device__ void copy_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
template <int kLeft> __device__ void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(kLeft)); }
__device__ void commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;");
#endif
}
__device__ float ex2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
"""

KERNEL = [
    ("barrier-dropped", "a(); __syncthreads(); b();", ["a(); ; b();"]),
    ("barrier-dropped", "__syncwarp(mask); block.sync();", ["; block.sync();", "__syncwarp(mask); ;"]),
    ("barrier-dropped", 'asm volatile("bar.sync 1, 64;");', [";"]),
    ("barrier-moved", "__syncthreads(); s[i] = 1; b();", ["; s[i] = 1; __syncthreads(); b();"]),
    ("barrier-moved", "__syncthreads(); return;", []),
    ("wait-count-plus-1", "copy_wait<N - 2>();", ["copy_wait<(N - 2) + 1>();"]),
    ("wait-count-plus-1", "__pipeline_wait_prior(1);", ["__pipeline_wait_prior(1 + 1);"]),
    (
        "wait-count-plus-1",
        'f(); asm("cp.async.wait_group %0;" ::"n"(2));',
        ['f(); asm("cp.async.wait_group %0;" ::"n"((2) + 1));'],
    ),
    ("wait-dropped", "copy_wait_all(); a();", ["; a();"]),
    ("wait-dropped", 'a(); asm("griddepcontrol.wait;");', ["a(); ;"]),
    ("commit-dropped", "commit(); __pipeline_commit();", ["; __pipeline_commit();", "commit(); ;"]),
    ("fence-dropped", "__threadfence(); a();", ["; a();"]),
    ("scope-narrowed", "__threadfence();", ["__threadfence_block();"]),
    (
        "scope-narrowed",
        'asm("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p));',
        ['asm("ld.acquire.cta.u32 %0, [%1];" : "=r"(v) : "l"(p));'],
    ),
    ("shuffle-mask", "v += __shfl_xor_sync(m, v, 1);", ["v += __shfl_xor_sync(0x0000ffffu, v, 1);"]),
    ("shuffle-width", "v = __shfl_sync(m, v, 0, 8);", ["v = __shfl_sync(m, v, 0, (8) / 2);"]),
    ("shuffle-width", "v = __shfl_sync(m, v, 0);", ["v = __shfl_sync(m, v, 0, 16);"]),
    ("shuffle-lane", "v = __shfl_sync(m, v, 4);", ["v = (v);", "v = __shfl_sync(m, v, (4) / 2);"]),
    ("comparison", "while (i < n) f();", ["while (i <= n) f();"]),
    ("comparison", "x = a >= b;", ["x = a > b;"]),
    ("comparison", "x = a == b; y = a << b;", []),
    ("bound-moved", "while (i < n) f();", ["while (i < (n) - 1) f();"]),
    ("bound-moved", "x = a <= b;", ["x = a <= (b) + 1;"]),
    ("predicate-inverted", "if (a) f(); else g();", ["if (!(a)) f(); else g();"]),
    ("predicate-inverted", "x = a ? b : c;", ["x = !(a) ? b : c;"]),
    ("predicate-inverted", "if constexpr (a) f();", []),
    ("guard-removed", "if (i >= n) return;", ["if (false && (i >= n)) return;"]),
    ("guard-removed", "if (i < n) { s[i] = 1; }", ["if (true || (i < n)) { s[i] = 1; }"]),
    ("guard-removed", "if (i < n) f(); else g();", []),
    ("guard-removed", "x = a && b && c;", ["x = (a && b);", "x = (b) && c;", "x = (a) && c;"]),
    ("modulo-dropped", "s = p % c + 1;", ["s = (p) + 1;"]),
    ("index-term-dropped", "x = a[i + j];", ["x = a[(i)];", "x = a[(j)];"]),
    ("index-term-dropped", "x = a + b; y = a + b * 2;", ["x = a + b; y = (a);", "x = a + b; y = (b * 2);"]),
    ("stride-dropped", "x = row * pitch; y = 2 * pitch;", ["x = row; y = 2 * pitch;"]),
    (
        "index-narrowed",
        "const long long at = 1ll * i;",
        ["const int at = 1ll * i;", "const long long at = 1 * i;"],
    ),
    ("index-narrowed", "x = static_cast<size_t>(i);", ["x = static_cast<unsigned>(i);"]),
    ("index-narrowed", "long long* p = 0; int y = 0;", []),
    ("next-element", "x = scale[g];", ["x = scale[g + 1];"]),
    ("first-element", "x = scale[g]; y = scale[0];", ["x = scale[0]; y = scale[0];"]),
    ("rescale-dropped", "o *= alpha; x = ex2(m - n);", ["; x = ex2(m - n);", "o *= alpha; x = 1.0f;"]),
    ("rescale-dropped", "x = expf(m) + ex(m);", ["x = 1.0f + ex(m);"]),
    ("initial-value", "float m = -INFINITY; int k = 3;", ["float m = 0; int k = 3;"]),
    ("initial-value", "float l = 0.0f;", ["float l = 1;"]),
    ("initial-value", "for (int i = 0;;) f();", []),
    ("max-to-first", "m = fmaxf(a, b);", ["m = (a);", "m = (b);"]),
    ("sign", "x = a - b; y += c;", ["x = a + b; y += c;", "x = a - b; y -= c;"]),
    ("sign", "x = -a;", ["x = a;"]),
    ("bits-dropped", "x = w >> 4 & 0xf;", ["x = (w >> 4);", "x = (w) & 0xf;"]),
    ("bits-dropped", "x = a & b;", []),
    ("constant-plus-1", "x = a + 3; y = 1.5f;", ["x = a + (3 + 1); y = 1.5f;"]),
    ("constant-plus-1", 'asm("add %0, %0, %1;" : "+r"(x) : "n"(4));', []),
    ("copy-size", "__pipeline_memcpy_async(s, g, 16);", ["__pipeline_memcpy_async(s, g, (16) / 2);"]),
    (
        "copy-size",
        'asm("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(s), "l"(g), "r"(a ? 16 : 0));',
        [
            'asm("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(s), "l"(g), "r"(16));',
            'asm("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(s), "l"(g), "r"(a ? (16) / 2 : 0));',
        ],
    ),
]

HOST = [
    (
        "launch-configuration",
        "k<<<dim3(n, 2), 128, 64, s>>>(a);",
        [
            "k<<<dim3((n) - 1, 2), 128, 64, s>>>(a);",
            "k<<<dim3((n) + 1, 2), 128, 64, s>>>(a);",
            "k<<<dim3(n, 2), (128) / 2, 64, s>>>(a);",
            "k<<<dim3(n, 2), (128) * 2, 64, s>>>(a);",
            "k<<<dim3(n, 2), 128, (64) / 2, s>>>(a);",
            "k<<<dim3(n, 2), 128, 0, s>>>(a);",
        ],
    ),
    (
        "launch-configuration",
        "c.dynamicSmemBytes = bytes;",
        ["c.dynamicSmemBytes = (bytes) / 2;", "c.dynamicSmemBytes = 0;"],
    ),
    ("stream-ignored", "k<<<1, 2, 0, s>>>();", ["k<<<1, 2, 0, cudaStream_t(0)>>>();"]),
    ("stream-ignored", "k<<<1, 2>>>();", []),
    ("launch-arguments", "k<<<1, 2>>>(a, b, b);", ["k<<<1, 2>>>(b, a, b);"]),
    ("error-swallowed", "return cudaGetLastError();", ["return ((void)(cudaGetLastError()), cudaSuccess);"]),
    ("error-swallowed", "return other();", []),
    ("copy-size", "cudaMemcpyAsync(d, s, n, k, t);", ["cudaMemcpyAsync(d, s, (n) / 2, k, t);"]),
]


def made(operator: str, source: str) -> list[str]:
    """The sources that one operator makes."""
    (own,) = (o for o in OPERATORS if o.name == operator)
    code = Code.of(source)
    changes = sorted(own.changes(code), key=lambda c: c.start)
    return [apply(code.tree.source, c.edits).decode() for c in changes]


@pytest.mark.parametrize(("operator", "body", "expected"), KERNEL)
def test_in_a_kernel(operator: str, body: str, expected: list[str]) -> None:
    """Fault: a mutant says one thing and does another, or a place that can have the fault is passed over."""
    head, tail = f"{WRAPPERS}__global__ void k() {{ ", " }\n"
    others = len(made(operator, f"{head}{tail}"))  # the wrappers' own
    mutants = [m for m in made(operator, head + body + tail) if m.startswith(head)]
    assert [m.removeprefix(head).removesuffix(tail) for m in mutants] == expected
    assert len(made(operator, head + body + tail)) == len(expected) + others


@pytest.mark.parametrize(("operator", "body", "expected"), HOST)
def test_in_a_launcher(operator: str, body: str, expected: list[str]) -> None:
    """Fault: a launch's grid, block, shared memory or stream is confused with another."""
    head, tail = "cudaError_t f(int n, cudaStream_t s) { ", " }\n"
    assert [m.removeprefix(head).removesuffix(tail) for m in made(operator, head + body + tail)] == expected


def test_one_instance_only() -> None:
    """Fault: the mutant of one instantiation changes the others too, or values are confused with types."""
    source = (
        "template <int D> __global__ void k(int n) { for (int i = 0; i < n; ++i) f(); __syncthreads(); }\n"
        "void f() { k<64><<<1, 2>>>(1); k<128><<<1, 2>>>(1); }\n"
    )
    changed = [m.splitlines()[0].partition("{ ")[2].removesuffix(" }") for m in made("one-instance", source)]
    loop, barrier = "for (int i = 0; i < n; ++i) f();", "__syncthreads();"
    assert set(changed) == {
        f"for (int i = 0; i < n - (D == {d} ? 1 : 0); ++i) f(); {barrier}" for d in (64, 128)
    } | {f"{loop} if (!(D == {d})) {barrier}" for d in (64, 128)}
    assert not made("one-instance", source.replace("k<128>", "k<64>"))


def test_unparsable_code_is_not_mutated() -> None:
    """Fault: an error of the grammar in one statement hides the rest, or is mutated by a wrong reading."""
    source = "__global__ void k(int n) { extern __shared__ __align__(16) unsigned char s[]; if (n < 3) f(); }"
    assert made("comparison", source) == [source.replace("<", "<=")]
    assert made("constant-plus-1", source) == [source.replace("3", "(3 + 1)")]


def test_every_operator_is_tested() -> None:
    """Fault: an operator without a snippet that tests its edits."""
    assert {o.name for o in OPERATORS} == {row[0] for row in (*KERNEL, *HOST)} | {"one-instance"}


def test_names_are_places_and_no_mutant_comes_twice() -> None:
    """Fault: two mutants of one name, of which a resumed campaign would try one; or one source twice."""
    source = "__global__ void k(int n) {\n  if (n < 3 && n < 4) f(); x = fmaxf(a, a);\n}\n"
    found = list(mutants_by_operators(Code.of(source)))
    assert [m.name for m in found if m.operator.name == "comparison"] == ["comparison@2", "comparison@2.2"]
    assert len({m.name for m in found}) == len(found) == len({m.source for m in found})


def test_edits() -> None:
    """Fault: edits shift each other, or overlap unnoticed."""
    assert apply("aébc".encode(), [Edit(0, 1, "xx"), Edit(3, 4, "")]).decode() == "xxéc"
    with pytest.raises(ValueError, match="overlap"):
        apply(b"abc", [Edit(0, 2, ""), Edit(1, 3, "")])
    assert changed_range(b"abcd", b"abXd") == (2, 3)
    assert changed_range(b"aa", b"aaa") == (2, 2)
    assert diff("a\nb\n", "a\nc\n", "k.cu", 0).splitlines()[2:] == ["@@ -2 +2 @@", "-b", "+c"]
