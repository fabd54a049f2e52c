"""Token parity as the ladder's top rung: runs it on a device and reports the result."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from verify.contract.discovery import own_contract_files
from verify.contract.model import Contract
from verify.device.interface import Device
from verify.finding.finding import Finding, Outcome, Verdict
from verify.finding.kind import FaultKind
from verify.system.progress import Progress
from verify.tokens.device_path import KernelPath, PathError, build_kernels, launcher_plans
from verify.tokens.model import Shape, build_model
from verify.tokens.operations import KERNELS, CaseBuilder, Oracle
from verify.tokens.parity import TokenReport, compare, decode_greedily
from verify.toolchain.compile import BuildError

CHECK = "tokens"
"""The check's name in outcomes and findings of this rung."""

PROMISED = "the kernels choose the oracle's token at every decided step, every result within its own bound"


@dataclass(frozen=True)
class TokenRung:
    """The result of token parity on one device. report: None if it did not complete; reason then says why.
    launches, elements: kernels run, and results compared with their bounds."""

    device: str
    verdict: Verdict
    reason: str = ""
    report: TokenReport | None = None
    launches: int = 0
    elements: int = 0

    @property
    def text(self) -> str:
        """One line: the verdict and its basis."""
        if self.report is None:
            return f"{self.verdict} ({self.reason})"
        equal = sum(a == b for a, b in zip(self.report.oracle_tokens, self.report.kernel_tokens, strict=True))
        words = {Verdict.CLEAN: "passed", Verdict.FINDINGS: "not passed"}
        ties = self.report.ties
        tied = f"{len(ties)} tie{'' if len(ties) == 1 else 's'}"
        steps = f" at step {', '.join(map(str, ties))}" if ties else ""
        return (
            f"{words.get(self.verdict, self.verdict)}, {equal} of {self.report.steps} tokens equal, "
            f"{tied}{steps} (lead below the tolerance of {self.report.tolerance:.3g}); "
            f"{self.elements:,} results of {self.launches:,} launches on {self.device}, "
            f"{len(self.report.deviations)} outside their bounds"
            + (f"; {self.reason}" if self.reason else "")
        )

    def outcome(self, kernel: str) -> Outcome:
        """The outcome for one of the decoder's kernels; all of them share it."""
        if self.verdict is not Verdict.FINDINGS or self.report is None:
            return Outcome(CHECK, kernel, "decoder", self.verdict, reason=self.reason)
        lines = self.report.lines
        finding = Finding(
            CHECK,
            kernel,
            f"{kernel}/decoder/tokens",
            FaultKind.OTHER_TOKEN if self.report.different else FaultKind.OUTSIDE_BOUND,
            lines[0],
            PROMISED,
            where=lines[-1] if len(lines) > 1 else "",
            repeat=f"python -m verify tokens --device {self.device}",
        )
        return Outcome.judge(CHECK, kernel, "decoder", [finding])


def climb(
    device: Device, architecture: str | None, progress: Progress, shape: Shape | None = None
) -> TokenRung:
    """Decode with the kernels on a device and with the oracle; inconclusive if something cannot run."""
    try:
        report, path = token_parity(device, architecture, progress, shape)
    except (PathError, BuildError) as error:
        return TokenRung(device.name, Verdict.INCONCLUSIVE, str(error))
    return TokenRung(device.name, report.verdict, report.reason, report, path.launches, path.elements)


@dataclass
class TopRung:
    """Token parity within a gate: run once per device, for the kernels that the decoder uses.

    wanted: whether to run it. missing: why there is no device, if there is none.
    """

    wanted: bool
    missing: str
    progress: Progress
    _climbed: dict[str, TokenRung] = field(default_factory=dict)

    def of(self, contract: Contract, device: Device | None, architecture: str) -> TokenRung | None:
        """The result on a device; None if it is not wanted, or for a user's kernel."""
        if not self.wanted or not _in_decoder(contract):
            return None
        if device is None:
            return TokenRung("no device", Verdict.NOT_RUN, self.missing)
        if architecture not in self._climbed:
            self._climbed[architecture] = climb(device, architecture, self.progress)
        return self._climbed[architecture]

    def text(self, contract: Contract, rung: TokenRung | None) -> str:
        """The rung's result, or why it was not run."""
        if rung is not None:
            return rung.text
        if not _in_decoder(contract):
            return f"not run (its decoder uses {', '.join(KERNELS)})"
        return "not run (verify run --ladder, or verify tokens)"


def _in_decoder(contract: Contract) -> bool:
    """Whether it is one of the suite's kernels that the decoder uses, not a user's of the same name."""
    return contract.name in KERNELS and contract.directory in {p.parent for p in own_contract_files()}


def token_parity(
    device: Device, architecture: str | None, progress: Progress, shape: Shape | None = None
) -> tuple[TokenReport, KernelPath]:
    """Run both paths on a device. Raises PathError if an operation fails, BuildError if a build does."""
    model = build_model(shape or Shape())
    progress(f"tokens: building {', '.join(KERNELS)}")
    kernels = CaseBuilder(lambda contract, symbols: {})
    builds = build_kernels(kernels.contracts, device, architecture, progress)
    plans = launcher_plans(builds, device)
    progress("tokens: decoding with the oracle")
    oracle, unrounded = (Oracle(CaseBuilder(plans, stored)) for stored in ("bf16", "f64"))
    decoded = decode_greedily(model, oracle, unrounded)
    with tempfile.TemporaryDirectory(prefix="verify-tokens-") as scratch:
        path = KernelPath(CaseBuilder(plans), builds, device, Path(scratch), progress)
        return compare(model, decoded, path, path.deviations), path
