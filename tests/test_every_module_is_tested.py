"""Every module of verify/ has a test file of its name, or a table says where it is tested."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]

ELSEWHERE = {
    "check/carried": "check/test_sanitize",
    "check/compare": "check/test_compare_poison",
    "check/diagnosed": "diagnosis/test_general",
    "check/drift": "check/test_determinism",
    "check/launch_faults": "check/test_launch",
    "check/native": "check/test_compare_poison",
    "check/poison": "check/test_compare_poison",
    "check/program": "check/test_program_verdict",
    "check/refusals": "check/test_launch",
    "check/repeatable": "gate/test_calls_on_device",
    "check/showing": "report/test_reproduction",
    "check/subject": "cli/test_bad_input",
    "check/tool_findings": "check/test_sanitize",
    "check/unwritten": "check/test_compare_poison",
    "contract/module": "system/test_interpreter",
    "contract/slots": "harness/test_render",
    "device/cuda_probe": "device/test_gpu",
    "device/elf": "device/test_program",
    "device/fat_binary": "device/test_program",
    "device/markers": "device/test_session",
    "device/program_log": "device/test_watched_program",
    "device/sanitizer/log": "device/sanitizer/test_logs",
    "device/sanitizer/program": "device/test_gpu",
    "device/sanitizer/proof": "device/sanitizer/test_logs",
    "device/sanitizer/read_log": "device/sanitizer/test_logs",
    "device/sanitizer/text_log": "device/sanitizer/test_logs",
    "device/sanitizer/xml_log": "device/sanitizer/test_logs",
    "fixture/cases": "oracle/test_power",
    "gate/blame": "contract/test_returned",
    "gate/prepare": "gate/test_gate",
    "harness/commands": "harness/test_build",
    "harness/rebuild": "mutation/test_bench",
    "oracle/arithmetic": "oracle/test_tracked",
    "oracle/elementwise": "oracle/test_tracked",
    "oracle/sums": "oracle/test_tracked",
    "report/instantiations": "fixture/test_axes",
    "report/report": "report/test_terminal",
    "source/declarations": "source/test_syntax",
    "system/completion": "cli/test_exit_codes",
    "system/exec_watch": "device/test_watched_program",
    "system/process_group": "device/test_session",
    "testing/worker": "testing/test_plugin",
    "toolchain/cache_entry": "toolchain/test_cache",
    "toolchain/compile": "harness/test_build",
    "toolchain/machine_sources": "toolchain/test_machine_build",
    "toolchain/sanitizer_program": "toolchain/test_toolchain",
    "wire/expected": "wire/test_pack",
    "wire/fills": "wire/test_pack",
    "wire/output": "wire/test_pack",
}
"""Module -> the test of its user: it was split off from that, or is visible only through it."""

TOGETHER = {
    "cli": "cli/test_bad_input",
    "contracts": "contracts/attention/test_flash_fixtures",
    "contracts/attention": "contracts/attention/test_attention_bounds",
    "contracts/matvec": "contracts/matvec/test_matvec_bounds",
    "contracts/oracles": "check/test_decode_pipeline",
    "diagnosis": "diagnosis/test_general",
    "mutation": "mutation/test_bench",
    "mutation/operators": "mutation/test_operators",
    "tokens": "tokens/test_token_parity",
}
"""Folder -> the test that runs its modules together, since they mean little apart."""

DATA = {
    "contract/compared",
    "contract/entries",
    "contract/hypothesis",
    "contract/model",
    "contract/symbols",
    "device/interface",
    "system/exit_code",
    "system/progress",
    "wire/run",
}
"""Types without code of their own."""


def modules() -> list[str]:
    files = (file.relative_to(ROOT / "verify") for file in (ROOT / "verify").rglob("*.py"))
    return sorted(str(file.with_suffix("")) for file in files if file.stem != "__init__")


def own_test(module: str) -> Path:
    place = Path(module)
    return ROOT / "tests" / place.parent / f"test_{place.name.strip('_')}.py"


def test_every_module_has_a_test_or_a_reason() -> None:
    """Fault: a module is added without a test, or without a note where it is tested."""
    explained = {*ELSEWHERE, *DATA}
    untested = [m for m in modules() if not own_test(m).is_file() and m not in explained]
    assert [m for m in untested if str(Path(m).parent) not in TOGETHER] == []


def test_the_exceptions_are_needed_and_their_tests_exist() -> None:
    """Fault: a module that was moved, or that has a test of its own by now, stays in the table."""
    known = set(modules())
    for module in (*ELSEWHERE, *DATA):
        assert module in known and not own_test(module).is_file(), module
    for test in (*ELSEWHERE.values(), *TOGETHER.values()):
        assert (ROOT / "tests" / f"{test}.py").is_file(), test
