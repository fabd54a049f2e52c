"""Judges the outputs of one run against the oracle, element by element. Never an aggregate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from verify.contract.formats import decode, format_of
from verify.contract.model import Case
from verify.contract.returned import ReturnedError, mapping
from verify.finding.finding import Finding
from verify.finding.kind import FaultKind
from verify.oracle.expectation import Quantity, encoded
from verify.wire.output import RunOutput
from verify.wire.run import Run


def observed_quantities(case: Case, output: RunOutput) -> dict[str, np.ndarray]:
    """Float64 values of every compared quantity: decoded output buffers, and invariants of intermediates."""
    contract = case.contract
    quantities = {
        b.name: decode(case.dtype(b), output.outputs[b.name]).astype(np.float64)
        for b in contract.buffers
        if b.role in ("out", "inout")
    }
    if contract.observe is not None:
        raw = {}
        for part in contract.intermediates:
            shape = tuple(int(case.evaluate(e)) for e in part.shape)
            fmt = format_of(part.dtype)
            start = int(case.evaluate(part.offset))
            count = int(np.prod(shape, dtype=np.int64)) * fmt.itemsize
            held = output.workspaces[part.buffer][start : start + count]
            if len(held) != count:
                why = f"needs {count} bytes from byte {start} of {part.buffer}, which has only {len(held)}"
                raise ReturnedError(f"{contract.file}: intermediates: {part.name}: {case.id}: {why}")
            raw[part.name] = decode(part.dtype, np.frombuffer(held, fmt.dtype).reshape(shape))
        quantities.update(mapping(contract.observe(case, raw), f"{contract.file}: observe"))
    return quantities


def judge_output(
    check: str,
    run: Run,
    output: RunOutput,
    expected: Mapping[str, Quantity],
    repeat: str,
    quantities: frozenset[str] | None = None,
    unwritten: Mapping[str, np.ndarray] | None = None,
) -> list[Finding]:
    """All findings of one run: bytes changed that must not change, unwritten outputs, elements out of bound.

    quantities: names to judge, None for all of ``expected``. unwritten: masks of the elements of each output
    that are known to be unwritten.
    """
    case = run.case
    findings = [*_intrusions(check, run, output, repeat)]
    observed = observed_quantities(case, output)
    for name, quantity in expected.items():
        if quantities is None or name in quantities:
            untouched = (unwritten or {}).get(name)
            findings += _judge_quantity(check, run, output, quantity, observed[name], repeat, untouched)
    return findings


def _intrusions(check: str, run: Run, output: RunOutput, repeat: str) -> list[Finding]:
    case = run.case
    findings = []
    for intrusion in output.intrusions:
        buffer, first, count = intrusion.buffer, intrusion.offset, intrusion.count
        role = case.contract.buffer(buffer).role
        promise = "inputs are not written" if role == "in" else "only the promised elements are written"
        findings.append(
            Finding(
                check,
                case.contract.name,
                case.id,
                FaultKind.WRITE_OUTSIDE,
                f"{count} bytes of {buffer} changed, the first at byte {first}",
                promise,
                where=f"{buffer} + {first}",
                repeat=repeat,
            )
        )
    return findings


def _judge_quantity(
    check: str,
    run: Run,
    output: RunOutput,
    quantity: Quantity,
    seen: np.ndarray,
    repeat: str,
    untouched: np.ndarray | None,
) -> list[Finding]:
    case, name = run.case, quantity.name
    buffer = next((b for b in case.contract.buffers if b.name == name), None)
    mask = np.ones(quantity.value.shape, bool) if buffer is None else case.mask(buffer, "promised")
    mask = element_mask(mask, quantity.value.shape)
    findings = []
    unwritten = np.zeros_like(mask)
    if untouched is not None:
        unwritten = untouched & mask
        if unwritten.any():
            findings.append(
                _element_finding(
                    check,
                    run,
                    quantity,
                    seen,
                    unwritten,
                    FaultKind.UNWRITTEN,
                    repeat,
                    "still has the fill from before the launch",
                )
            )
    if quantity.exact and quantity.dtype is not None and buffer is not None:
        bits = output.outputs[name]
        apart = element_mask(bits != encoded(quantity).reshape(bits.shape), mask.shape)
    else:
        apart = outside_bound(quantity, seen)
    wrong = mask & ~unwritten & apart
    special = wrong & (np.isnan(seen) != np.isnan(quantity.value))
    if special.any():
        findings.append(
            _element_finding(
                check,
                run,
                quantity,
                seen,
                special,
                FaultKind.WRONG_NAN if np.isnan(seen[special][0]) else FaultKind.MISSING_NAN,
                repeat,
            )
        )
    wrong &= ~special
    if wrong.any():
        kind = FaultKind.NOT_BIT_EQUAL if quantity.exact else FaultKind.OUTSIDE_BOUND
        findings.append(_element_finding(check, run, quantity, seen, wrong, kind, repeat))
    return findings


def outside_bound(quantity: Quantity, seen: np.ndarray) -> np.ndarray:
    """Boolean mask of wrong elements: those outside their bound, unless both are NaN or the same infinity."""
    with np.errstate(invalid="ignore"):
        agree = np.abs(seen - quantity.value) <= quantity.bound
    agree |= np.isnan(seen) & np.isnan(quantity.value)
    agree |= np.isinf(seen) & (seen == quantity.value)
    return ~agree


def element_mask(mask: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A mask over storage items as a mask over elements (packed formats have several per item)."""
    if mask.shape == shape:
        return np.array(mask)
    return np.repeat(mask, shape[-1] // mask.shape[-1], axis=-1)


def like_before(
    case: Case, output: RunOutput, expected: Mapping[str, Quantity], right_too: bool = False
) -> dict[str, np.ndarray]:
    """Masks of each output's promised elements that did not change in the call.

    right_too: including those whose fill happens to be within the bound.
    """
    found = {}
    for name, prior in (output.prior or {}).items():
        quantity = expected.get(name)
        if quantity is not None and quantity.dtype is not None:
            shape = quantity.value.shape
            promised = case.mask(case.contract.buffer(name), "promised")
            same = element_mask(output.outputs[name] == prior, shape) & element_mask(promised, shape)
            if not right_too:
                same &= outside_bound(quantity, decode(quantity.dtype, prior).astype(np.float64))
            found[name] = same
    return found


def _element_finding(
    check: str,
    run: Run,
    quantity: Quantity,
    seen: np.ndarray,
    wrong: np.ndarray,
    kind: FaultKind,
    repeat: str,
    remark: str = "",
) -> Finding:
    case, name = run.case, quantity.name
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    with np.errstate(all="ignore"):
        excess = np.where(wrong, np.abs(seen - quantity.value) / np.maximum(quantity.bound, 1e-300), -1.0)
    worst = tuple(
        int(i) for i in np.unravel_index(int(np.argmax(np.nan_to_num(excess, nan=np.inf))), seen.shape)
    )
    value = f"{name}{list(first)} = {seen[first]:.9g}"
    details = [
        ("elements", f"{int(wrong.sum())} of {wrong.size} wrong"),
        ("reference", f"{quantity.value[first]:.9g}"),
        ("bound", _bound_text(quantity, first)),
        ("fills", f"dead {run.fills.dead}, workspace {run.fills.workspace}, output {run.fills.output}"),
    ]
    if worst != first:
        details.append(
            ("worst", f"{name}{list(worst)} = {seen[worst]:.9g}, reference {quantity.value[worst]:.9g}")
        )
    return Finding(
        check,
        case.contract.name,
        case.id,
        kind,
        f"{value}; {remark}" if remark else value,
        f"{quantity.value[first]:.9g} within {_bound_text(quantity, first)}",
        where=coordinates(case, name, first),
        repeat=repeat,
        details=tuple(details),
    )


def _bound_text(quantity: Quantity, at: tuple[int, ...]) -> str:
    if quantity.exact:
        return "0 (exact profile: bit equality)"
    return f"{quantity.bound[at]:.3g} (running error of the contract's model over this case's data)"


def coordinates(case: Case, quantity: str, index: tuple[int, ...]) -> str:
    """An element's coordinates in the contract's terms: ``batch 1, head 3, dim 17; split 2, ...``."""
    contract = case.contract
    axes = contract.axes.get(quantity)
    if axes is None:
        known = {b.name: b for b in contract.buffers}
        shape = known[quantity].shape if quantity in known else ()
        axes = tuple(str(e) for e in shape) if len(shape) == len(index) else ()
    text = (
        ", ".join(f"{a} {i}" for a, i in zip(axes, index, strict=False)) if axes else f"index {list(index)}"
    )
    more = contract.locate(case, quantity, index) if contract.locate is not None else ""
    return f"{text}; {more}" if more else text
