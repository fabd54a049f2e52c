"""Programs that use each part of the CUDA runtime run on the CPU device and find what they expect.

Each program in ``programs/`` checks its own expectations and says so; the comment at its head says what it is
about. All are built by every nvcc at hand (13.0 and 13.5 register their kernels differently).
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from verify.check.program import ProgramReport, run_program
from verify.device.program import ProgramOptions, compile_program
from verify.toolchain.toolchain import Toolchain, find_toolchain

PROGRAMS = Path(__file__).parent / "programs"
SELF_CHECKING = (
    "allocation_order",
    "dependent",
    "asserting",
    "device",
    "device_heap",
    "errors",
    "graphs",
    "late",
    "library",
    "launches",
    "memory",
    "per_thread",
    "pools",
    "streams",
    "waiting_host",
)


def _toolchains() -> list[Toolchain]:
    found = {
        tools.version: tools for tools in (find_toolchain("pip"), find_toolchain("system")) if tools.can_build
    }
    return list(found.values())


TOOLCHAINS = _toolchains()


@pytest.fixture(params=TOOLCHAINS, ids=lambda tools: f"nvcc {tools.version}")
def toolchain(request: pytest.FixtureRequest) -> Toolchain:
    """Each compiler of this machine."""
    chosen: Toolchain = request.param
    return chosen


def build(name: str, toolchain: Toolchain, architecture: str = "sm_90", *flags: str) -> Path:
    """The binary of a program; its ``// nvcc:`` line adds flags."""
    source = PROGRAMS / f"{name}.cu"
    named = re.search(r"^// nvcc: (.*)$", source.read_text(), re.MULTILINE)
    own = named[1].split() if named else []
    return compile_program(source, architecture, [*own, *flags], toolchain=toolchain)


def run(
    binary: Path, tmp_path: Path, *arguments: str, options: ProgramOptions | None = None
) -> tuple[ProgramReport, str, str]:
    """Report, standard output and standard error of a run."""
    out, err = tmp_path / "out.txt", tmp_path / "err.txt"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        result = run_program(
            [str(binary), *arguments],
            options or ProgramOptions(tools=()),
            stdout=stdout.fileno(),
            stderr=stderr.fileno(),
        )
    return result, out.read_text(), err.read_text()


@pytest.mark.parametrize("name", SELF_CHECKING)
def test_program_reports_what_it_expects(name: str, toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: a runtime entry that returns another code, order or value than the documentation says."""
    result, out, err = run(
        build(name, toolchain), tmp_path, options=ProgramOptions((), report_api_errors=False)
    )
    assert result.program_code == 0, out + err
    assert "all expectations hold" in out


@pytest.mark.parametrize("name", ["device", "launches"])
def test_program_on_the_other_architecture(name: str, toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: limits and properties of sm_90 given out for sm_80."""
    options = ProgramOptions((), architecture="sm_80", report_api_errors=False)
    result, out, err = run(build(name, toolchain, "sm_80"), tmp_path, options=options)
    assert result.program_code == 0, out + err


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_order_holds_for_every_seed(seed: int, toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: an order that holds only because tasks happen to run as they were submitted."""
    for name in ("streams", "graphs"):
        options = ProgramOptions((), seed=seed, report_api_errors=False)
        result, out, err = run(build(name, toolchain), tmp_path, options=options)
        assert result.program_code == 0, out + err


def test_printf_comes_through_in_order(toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: device output lost, reordered against the host's, or formatted by other rules than
    the host's."""
    result, out, _ = run(build("printing", toolchain), tmp_path)
    assert result.exit_code == 0
    assert out.splitlines() == [
        "before",
        "thread 1 of 4: 1.25  12.5% abcdef",
        "device text z 7   |",
        "after",
    ]


def test_unprovided_entry_is_named(toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: a missing entry passes as one that worked, or loses the output printed before."""
    result, out, err = run(build("unprovided", toolchain), tmp_path)
    assert result.exit_code == 3
    assert "cudaMallocArray is not provided by the CPU device" in result.reason + err
    assert out == "printed before\n"


@pytest.mark.parametrize(
    ("how", "code"), [("return", 0), ("exit", 5), ("abort", 128 + 6), ("crash", 128 + 11), ("fork", 0)]
)
def test_every_way_to_leave_keeps_report_and_code(
    how: str, code: int, toolchain: Toolchain, tmp_path: Path
) -> None:
    """Fault: a report lost, or an exit code changed, because the program did not return from main."""
    options = ProgramOptions(("memcheck",), report_api_errors=False)
    result, out, err = run(build("leaving", toolchain), tmp_path, how, options=options)
    assert result.exit_code == code, out + err
    assert result.report is not None
    assert result.report.launches == (1 if how in ("abort", "crash") else 2)


@pytest.mark.parametrize("how", ["_exit", "kill"])
def test_program_without_a_report_is_not_verified(how: str, toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: a program that leaves no time for the report is called clean."""
    result, _, _ = run(build("leaving", toolchain), tmp_path, how, options=ProgramOptions(("memcheck",)))
    assert result.exit_code == 3
    assert "before its report" in result.reason


@pytest.mark.parametrize("arguments", [(), ("spin",)], ids=["works for ever", "waits for ever"])
def test_endless_kernel_ends_in_a_finding(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Fault: an endless kernel blocks the run, or is killed without a message or without its line."""
    options = ProgramOptions(("memcheck", "synccheck"), launch_timeout=1, report_api_errors=False)
    result, out, _ = run(build("endless", TOOLCHAINS[0]), tmp_path, *arguments, options=options)
    assert (result.exit_code, result.program_code) == (1, 0), out
    assert result.report is not None
    (finding,) = result.report.findings
    loop = "while (*flag" if arguments else "for (unsigned"
    lines = (PROGRAMS / "endless.cu").read_text().splitlines()
    assert loop in lines[finding.sites[0].source[0].line - 1]
    assert ".000" not in finding.message


def test_same_seed_gives_the_same_report_on_any_number_of_cores(tmp_path: Path) -> None:
    """Fault: the report depends on timing or on the number of cores."""
    faulty = PROGRAMS.parents[1] / "programs" / "reset_counter_faulty.cu"
    binaries = [compile_program(faulty, "sm_90"), build("streams", TOOLCHAINS[0])]
    for binary in binaries:
        texts = set()
        for threads in (1, 2, 2):
            options = ProgramOptions(seed=7, threads=threads, report_api_errors=False)
            result, _, _ = run(binary, tmp_path, options=options)
            assert result.report is not None
            texts.add(result.report.text)
        assert len(texts) == 1


def test_static_runtime_is_refused(toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: a program whose runtime cannot be replaced runs unchecked and is reported as clean."""
    binary = _printing(toolchain, tmp_path, "-cudart", "static")
    result, _, _ = run(binary, tmp_path)
    assert (result.exit_code, result.program_code) == (3, None)
    assert "-cudart shared" in result.reason


def test_relocatable_code_is_refused(toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: relocatable device code, which leaves no PTX in the program, is reported as clean."""
    _nvcc(toolchain, tmp_path, "-rdc=true", "-c", str(PROGRAMS / "printing.cu"), "-o", "code.o")
    _nvcc(toolchain, tmp_path, "-dlink", "code.o", "-o", "link.o")
    _nvcc(toolchain, tmp_path, "code.o", "link.o", "-o", "program", *toolchain.link_flags())
    binary = tmp_path / "program"
    result, _, err = run(binary, tmp_path)
    assert result.exit_code == 3
    assert "-rdc=true" in result.reason + err


def test_machine_code_only_is_refused(toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: a program without PTX is not refused."""
    binary = _printing(toolchain, tmp_path, "-gencode", "arch=compute_90,code=sm_90", *toolchain.link_flags())
    result, _, _ = run(binary, tmp_path)
    assert result.exit_code == 3
    assert "code=compute_90" in result.reason


def test_newer_ptx_is_refused_on_the_older_architecture(toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: PTX of a later architecture runs on an earlier one."""
    options = ProgramOptions((), architecture="sm_80")
    result, _, _ = run(build("printing", toolchain), tmp_path, options=options)
    assert result.exit_code == 3
    assert "compute_80" in result.reason


ARCHITECTURE = """\
#include <cstdio>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr int architecture = 90;
#else
constexpr int architecture = 80;
#endif
__global__ void which() { printf("compiled for %d", architecture); }
int main() {
  which<<<1, 1>>>();
  return cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize("number", [80, 90])
def test_the_image_of_the_architecture_is_chosen(number: int, toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: of a binary for two architectures, the wrong code path is checked."""
    (tmp_path / "which.cu").write_text(ARCHITECTURE)
    codes = [f"-gencode=arch=compute_{n},code=[compute_{n},sm_{n}]" for n in (80, 90)]
    _nvcc(toolchain, tmp_path, "which.cu", "-o", "program", *codes, *toolchain.link_flags())
    options = ProgramOptions((), architecture=f"sm_{number}")
    result, out, _ = run(tmp_path / "program", tmp_path, options=options)
    assert (result.exit_code, out) == (0, f"compiled for {number}")


def test_compressed_ptx_is_unpacked(toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: a program with nvcc's default compression does not run."""
    ptx_only = ("-gencode", "arch=compute_90,code=compute_90")
    binary = _printing(toolchain, tmp_path, *ptx_only, *toolchain.link_flags())
    result, out, _ = run(binary, tmp_path)
    assert result.exit_code == 0
    assert "device text" in out


def test_damaged_fat_binary_is_one_line(toolchain: Toolchain, tmp_path: Path) -> None:
    """Fault: a container longer than the program ends in a crash instead of one line."""
    data = bytearray(build("printing", toolchain).read_bytes())
    at = data.find(bytes.fromhex("50ed55ba"))
    data[at + 8 : at + 16] = (1 << 40).to_bytes(8, "little")
    damaged = tmp_path / "damaged"
    damaged.write_bytes(data)
    damaged.chmod(0o755)
    result, _, _ = run(damaged, tmp_path)
    assert result.exit_code == 3
    assert "truncated" in result.reason


@pytest.mark.parametrize(
    ("old", "new"), [(b"ret;", b"rot;"), (b".entry", b".eentr"), (b".reg .b", b".reg .q"), (b"{", b"\x00")]
)
def test_garbage_in_the_ptx_is_one_line(old: bytes, new: bytes, tmp_path: Path) -> None:
    """Fault: PTX that cannot be read crashes the program, loses a kernel, or passes for a clean run."""
    data = build("printing", TOOLCHAINS[0]).read_bytes()
    begin = data.find(b".version")
    end = data.rfind(old, begin) + len(old)
    assert begin > 0
    damaged = tmp_path / "damaged"
    damaged.write_bytes(data[:begin] + data[begin:end].replace(old, new) + data[end:])
    damaged.chmod(0o755)
    result, _, _ = run(damaged, tmp_path)
    assert result.exit_code == 3, result
    assert result.reason
    assert "\n" not in result.reason


def test_program_that_uses_no_gpu_is_not_verified(tmp_path: Path) -> None:
    """Fault: a program that launches nothing is reported as clean."""
    result = run_program(["true"], ProgramOptions(("memcheck",)), stdout=subprocess.DEVNULL)
    assert result.exit_code == 3
    assert "never used the CUDA runtime" in result.reason


def test_missing_program_is_one_line() -> None:
    """Fault: a wrong name ends in a traceback."""
    result = run_program(["./no-such-program"])
    assert (result.exit_code, result.reason) == (2, "./no-such-program: no such program")


def _printing(toolchain: Toolchain, folder: Path, *flags: str | Path) -> Path:
    _nvcc(toolchain, folder, str(PROGRAMS / "printing.cu"), "-o", "program", *flags)
    return folder / "program"


def _nvcc(toolchain: Toolchain, folder: Path, *flags: str | Path) -> None:
    command = [str(toolchain.nvcc), "-ccbin", str(toolchain.gxx), *flags]
    environment = toolchain.environment()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
