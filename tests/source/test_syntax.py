"""Is a CUDA source read as it stands, and what cannot be read listed and left alone?"""

from __future__ import annotations

import sys

import pytest

from verify.source import syntax
from verify.source.declarations import (
    Include,
    Macro,
    Parameter,
    TemplateParameter,
    functions_of,
    includes_of,
    kernels_of,
    launches_of,
    macros_of,
)
from verify.source.syntax import ParserMissingError, parse

KERNEL = """
#include <cuda_runtime.h>
#include "mine.h"
#define TILE 32
#define INDEX(r, c) ((r) * TILE + (c))
namespace own { namespace {
template <typename T, int N = 4>
__global__ void __launch_bounds__(128, 2) scale(const T* __restrict__ x, float (&y)[4], int n = 3) {
  asm volatile("cp.async.wait_group %0;" ::"n"(1));
}
__host__ __device__ constexpr int twice(int) { return 2; }
__device__ __forceinline__ float* at(float* p) { return p; }
} }
extern "C" cudaError_t launch(Args* a, cudaStream_t s) {
  own::scale<float, 4><<<dim3(1, 2), 128, bytes, s>>>(a->x, a->n);
  plain<<<1, 2>>>();
  return cudaGetLastError();
}
"""


def test_a_kernel_is_read_with_its_parameters_and_template() -> None:
    """Fault: a type loses its qualifiers or its array, or a default is taken for a part of the type."""
    (kernel,) = kernels_of(parse(KERNEL))
    assert (kernel.name, kernel.scope, kernel.result, kernel.line) == ("scale", ("own",), "void", 8)
    assert kernel.parameters == (
        Parameter("const T* __restrict__", "x"),
        Parameter("float (&)[4]", "y"),
        Parameter("int", "n", "3"),
    )
    assert kernel.template == (TemplateParameter("typename", "T"), TemplateParameter("int", "N", "4"))
    assert kernel.launch_bounds == ("128", "2")
    assert kernel.on_device_only and not kernel.extern_c


def test_where_a_function_runs() -> None:
    """Fault: a function that the host compiles too counts as a device-only one."""
    functions = {f.name: f for f in functions_of(parse(KERNEL))}
    assert list(functions) == ["scale", "twice", "at", "launch"]
    assert [f.on_device_only for f in functions.values()] == [True, False, True, False]
    assert functions["at"].result == "float" and functions["launch"].extern_c
    assert functions["twice"].parameters == (Parameter("int", ""),)


def test_a_launch_is_read_with_its_configuration() -> None:
    """Fault: a launch's grid is parsed as an argument, or a launch without a template is missed."""
    tree = parse(KERNEL)
    first, second = launches_of(tree)
    assert (first.kernel, first.template, first.function) == ("own::scale", ("float", "4"), "launch")
    assert [tree.text(n) for n in first.configuration] == ["dim3(1, 2)", "128", "bytes", "s"]
    assert [tree.text(n) for n in first.arguments] == ["a->x", "a->n"]
    assert (second.kernel, len(second.configuration), second.arguments) == ("plain", 2, ())


def test_the_key_includes_preprocessed_text() -> None:
    """Fault: a user's header counts as a system header, or a macro's parameters are lost."""
    tree = parse(KERNEL)
    assert includes_of(tree) == (Include("cuda_runtime.h", True), Include("mine.h", False))
    assert macros_of(tree) == (
        Macro("TILE", None, "32"),
        Macro("INDEX", ("r", "c"), "((r) * TILE + (c))"),
    )


def test_unparsable_guards_are_listed_and_the_rest_is_kept() -> None:
    """Fault: one declaration that the grammar does not know makes the kernel around it unreadable."""
    tree = parse(
        "__global__ void k(int n) {\n"
        "  extern __shared__ __align__(16) unsigned char s[];\n"
        "  if (n < 3) f();\n}\n"
    )
    assert {(f.line, f.function) for f in tree.faults} == {(2, "k")}
    assert str(tree.faults[0]).startswith("2:")
    (kernel,) = kernels_of(tree)
    (condition,) = tree.find("condition_clause", within=kernel.body)
    assert tree.is_whole(condition) and not tree.is_whole(kernel.node)


def test_offsets_are_bytes() -> None:
    """Fault: a letter of two bytes in a comment moves every edit behind it."""
    tree = parse("// é\nint f() { return 1; }\n")
    (number,) = tree.find("number_literal")
    assert tree.source[number.start_byte : number.end_byte] == b"1"


def test_a_missing_parser_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: without the extra, an ImportError names a package that the user never requested."""
    monkeypatch.setitem(sys.modules, "tree_sitter_cuda", None)
    syntax._parser.cache_clear()
    with pytest.raises(ParserMissingError, match="extra 'mutate'"):
        parse("int x;")
    syntax._parser.cache_clear()
