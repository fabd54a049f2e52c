"""Faults of barriers, waits, commits, fences and scopes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from verify.mutation.edit import Edit
from verify.mutation.kinds import Kind
from verify.mutation.operators.code import Change, Code, Operator, dropped, replaced, statement_of

if TYPE_CHECKING:
    from tree_sitter import Node

BARRIERS = ("__syncthreads", "__syncwarp", "__barrier_sync")
_BARRIER = re.compile(
    r"\b(?:bar|barrier)(?:\.cta|\.cluster)?\.(?:warp\.)?(?:sync|arrive|wait)|mbarrier\.arrive"
)
_WAIT = re.compile(r"wait_group|wait_all|griddepcontrol\.wait|mbarrier\.(?:try|test)_wait|wgmma\.wait")
_COMMIT = re.compile(r"commit_group")
_FENCE = re.compile(r"\bfence\.|\bmembar\.|wgmma\.fence")
_WAITS = ("__pipeline_wait_prior", "cudaGridDependencySynchronize", "consumer_wait", "cp_async_wait")
_COMMITS = ("__pipeline_commit", "producer_commit", "cp_async_commit", "cp_async_fence")
_FENCES = ("__threadfence", "__threadfence_block", "__threadfence_system", "__fence_proxy_async")
_NARROWER = {
    "__threadfence_system": "__threadfence",
    "__threadfence": "__threadfence_block",
    "thread_scope_system": "thread_scope_device",
    "thread_scope_device": "thread_scope_block",
    "memory_scope_system": "memory_scope_device",
}
_SCOPE = re.compile(r"\.(sys|gpu|cluster)\b")
_NARROWER_SCOPE = {"sys": "gpu", "gpu": "cta", "cluster": "cta"}


def _sites(code: Code, names: tuple[str, ...], instruction: re.Pattern[str]) -> Iterator[Node]:
    """Statements that call such an intrinsic or a wrapper of such an instruction, or are one."""
    known = {*names, *code.wrappers(instruction)}
    found = [s for c in code.find("call_expression") if code.called(c) in known and (s := statement_of(c))]
    yield from sorted([*found, *code.assembly_statements(instruction)], key=lambda n: n.start_byte)


def _barriers(code: Code) -> Iterator[Node]:
    yield from _sites(code, BARRIERS, _BARRIER)
    for call in code.find("call_expression"):  # cooperative groups: group.sync()
        callee = call.child_by_field_name("function")
        if callee is not None and callee.type == "field_expression" and code.called(call) == "sync":
            statement = statement_of(call)
            if statement is not None:
                yield statement


def _barrier_dropped(code: Code) -> Iterator[Change]:
    for statement in _barriers(code):
        yield Change((dropped(statement),), f"{code.text(statement)} is missing")


def _barrier_moved(code: Code) -> Iterator[Change]:
    """Past the statement behind it: what that writes or reads is no longer ordered."""
    for statement in _barriers(code):
        after = statement.next_named_sibling
        while after is not None and after.type == "comment":
            after = after.next_named_sibling
        if after is None or after.type == "return_statement" or not code.tree.is_whole(after):
            continue
        moved = Edit(after.end_byte, after.end_byte, f" {code.text(statement)}")
        yield Change((dropped(statement), moved), f"{code.text(statement)} comes one statement late")


def _wait_count(code: Code) -> Iterator[Change]:
    """One group more may be pending than before."""
    for call in code.calls("__pipeline_wait_prior", *code.wrappers(_WAIT)):
        callee = call.child_by_field_name("function")
        listed = (
            next((c for c in callee.children if c.type == "template_argument_list"), None) if callee else None
        )
        counts = listed.named_children if listed is not None else code.arguments(call)
        if len(counts) == 1:
            count = f"{code.text(counts[0])} + 1" if listed is None else f"({code.text(counts[0])}) + 1"
            yield Change((replaced(counts[0], count),), f"{code.text(call)} leaves one group more pending")
    for statement in code.assembly_statements(_WAIT):
        for operand in code.tree.find("gnu_asm_input_operand", within=statement):
            value = operand.child_by_field_name("value")
            if value is not None and '"n"' in code.text(operand):
                more = f"({code.text(value)}) + 1"
                yield Change((replaced(value, more),), "the wait leaves one group more pending")


def _waits_dropped(code: Code) -> Iterator[Change]:
    for statement in _sites(code, _WAITS, _WAIT):
        yield Change((dropped(statement),), f"{_short(code, statement)} is missing")


def _commits_dropped(code: Code) -> Iterator[Change]:
    for statement in _sites(code, _COMMITS, _COMMIT):
        yield Change((dropped(statement),), f"{_short(code, statement)} is missing")


def _fences_dropped(code: Code) -> Iterator[Change]:
    for statement in _sites(code, _FENCES, _FENCE):
        yield Change((dropped(statement),), f"{_short(code, statement)} is missing")


def _scope_narrowed(code: Code) -> Iterator[Change]:
    for node in code.find("identifier"):
        if (narrower := _NARROWER.get(code.text(node))) is not None:
            yield Change((replaced(node, narrower),), f"{code.text(node)} is {narrower}")
    for node in code.find("string_content"):
        if node.parent is None or node.parent.parent is None or "asm" not in node.parent.parent.type:
            continue
        for match in _SCOPE.finditer(code.text(node)):
            start = node.start_byte + match.start(1)
            narrower = _NARROWER_SCOPE[match[1]]
            yield Change(
                (Edit(start, start + len(match[1]), narrower),), f"the scope {match[1]} is {narrower}"
            )


def _short(code: Code, node: Node) -> str:
    text = " ".join(code.text(node).split())
    return text if len(text) < 60 else f"{text[:57]}..."


OPERATORS = (
    Operator("barrier-dropped", Kind.RACE, _barrier_dropped),
    Operator("barrier-moved", Kind.RACE, _barrier_moved),
    Operator("wait-count-plus-1", Kind.RACE, _wait_count),
    Operator("wait-dropped", Kind.RACE, _waits_dropped),
    Operator("commit-dropped", Kind.RACE, _commits_dropped),
    Operator("fence-dropped", Kind.BLOCKS, _fences_dropped),
    Operator("scope-narrowed", Kind.BLOCKS, _scope_narrowed),
)
