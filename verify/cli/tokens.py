"""``verify tokens``: the ladder's top rung, a small decoder run with the kernels and with the oracle."""

from __future__ import annotations

import json
from dataclasses import asdict

from verify.cli import options
from verify.cli.console import finish, out, progress_line
from verify.device.select import NoDevice, select_device
from verify.finding.finding import EXIT_CODES, Verdict
from verify.report.ladder import TOKENS
from verify.tokens.operations import KERNELS
from verify.tokens.rung import TokenRung, climb


def tokens(
    device: options.DeviceChoice = "auto",
    arch: options.Architecture = None,
    as_json_text: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Decode greedily with the production kernels and with the oracle: every token must be the same.

    A small decoder with seeded weights: five sliding-window GQA layers to one global MQA layer, FP4
    projections, an FP8 head, decoded far past the window. Reports step, layer and op of the first result
    outside its bound. [bold]verify run --ladder[/] includes this.
    """
    choice = select_device(device)
    if isinstance(choice, NoDevice):
        rung = TokenRung(device, Verdict.NOT_RUN, choice.reason)
    else:
        with progress_line(quiet) as progress:
            rung = climb(choice, arch, progress)
    if as_json_text:
        report = asdict(rung.report) if rung.report else {}
        out.print_json(json.dumps({**report, **{k: v for k, v in asdict(rung).items() if k != "report"}}))
    else:
        for line in rung.report.lines if rung.report else ():
            out.print(f"  {line}", markup=False, highlight=False)
        out.print(f"{TOKENS} of {', '.join(KERNELS)}: {rung.text}", markup=False, highlight=False)
    finish(EXIT_CODES[rung.verdict])
