"""``verify tokens``: the ladder's top rung, a small decoder through the kernels and through the oracle."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from verify.cli import options
from verify.cli.console import out, progress_line
from verify.device.interface import Device
from verify.device.select import NoDevice, select_device
from verify.finding import EXIT_CODES, Verdict
from verify.tokens.device_path import KernelPath, PathError, Progress, build_kernels, launcher_plans
from verify.tokens.model import Shape, build_model
from verify.tokens.operations import CaseBuilder, Oracle
from verify.tokens.parity import TokenReport, compare, decode_greedily


def tokens(
    device: options.DeviceChoice = "auto",
    arch: options.Architecture = None,
    as_json_text: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Decode greedily with the production kernels and with the oracle: every token must be the same.

    A small decoder with seeded weights: five sliding-window GQA layers to one global MQA layer, FP4
    projections, an FP8 head, decoded far past the window. Names step, layer and op of the first result
    outside its bound.
    """
    choice = select_device(device)
    if isinstance(choice, NoDevice):
        out.print(f"token parity: {Verdict.NOT_RUN}: {choice.reason}", soft_wrap=True)
        raise SystemExit(EXIT_CODES[Verdict.NOT_RUN])
    with progress_line(quiet) as progress:
        try:
            report, path = token_parity(choice, arch, progress)
        except PathError as error:
            out.print(f"token parity: {Verdict.INCONCLUSIVE}: {error}", soft_wrap=True)
            raise SystemExit(EXIT_CODES[Verdict.INCONCLUSIVE]) from None
    if as_json_text:
        out.print_json(json.dumps({**asdict(report), "launches": path.launches, "elements": path.elements}))
    else:
        _print(report, path)
    raise SystemExit(EXIT_CODES[report.verdict])


def token_parity(
    device: Device, architecture: str | None, progress: Progress, shape: Shape | None = None
) -> tuple[TokenReport, KernelPath]:
    """Both paths on a device. Raises PathError when an operation did not run, BuildError when none can."""
    model = build_model(shape or Shape())
    progress("building the kernels")
    kernels = CaseBuilder(lambda contract, symbols: {})
    builds = build_kernels(kernels.contracts, device, architecture, progress)
    plans = launcher_plans(builds, device)
    progress("decoding with the oracle")
    oracle, unrounded = (Oracle(CaseBuilder(plans, stored)) for stored in ("bf16", "f64"))
    decoded = decode_greedily(model, oracle, unrounded)
    with tempfile.TemporaryDirectory(prefix="verify-tokens-") as scratch:
        path = KernelPath(CaseBuilder(plans), builds, device, Path(scratch), progress)
        return compare(model, decoded, path, path.deviations), path


def _print(report: TokenReport, path: KernelPath) -> None:
    for text in report.lines:
        out.print(f"  {text}", soft_wrap=True, highlight=False)
    equal = sum(a == b for a, b in zip(report.oracle_tokens, report.kernel_tokens, strict=True))
    out.print(
        f"{equal} of {report.steps} tokens equal, {len(report.ties)} ties (lead below the tolerance of "
        f"{report.tolerance:.3g}{_steps(report.ties)}); {path.elements:,} results of {path.launches:,} "
        f"launches on {path.device.name}, {len(report.deviations)} outside their bounds",
        soft_wrap=True,
        highlight=False,
    )
    why = f": {report.reason}" if report.reason else ""
    out.print(f"token parity: [bold]{report.verdict}[/]{why}", soft_wrap=True)


def _steps(ties: tuple[int, ...]) -> str:
    return f": steps {', '.join(map(str, ties))}" if ties else ""
