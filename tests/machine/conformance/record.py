"""Records the hardware's answers: ``python3 tests/machine/conformance/record.py [--family NAME]...``.

Needs an sm_90 GPU, its driver, and nvcc 13.0 or later (nothing else: standard library only). Without
``--family`` everything is recorded again; ``runtime`` stands for the programs about the runtime. Writes the
folder ``answers`` (answers.py says how), which ``test_conformance.py`` compares the CPU device with; a family
that is not named stays as it is.
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from conformance.answers import (  # type: ignore[import-not-found]  # noqa: E402
    ANSWERS,
    RUNTIME,
    Answers,
    Recorded,
    read_answers,
    write_answers,
    write_runtime,
)
from conformance.api import RUNS, Run  # type: ignore[import-not-found]  # noqa: E402
from conformance.plan import PLANNED, write_plan  # type: ignore[import-not-found]  # noqa: E402


def changes(now: Answers, before: Answers) -> str:
    """How the answers of a family differ from those that were there."""
    new, gone = now.forms.keys() - before.forms.keys(), before.forms.keys() - now.forms.keys()
    both = sorted(now.forms.keys() & before.forms.keys())
    other = [key for key in both if now.forms[key].answer != before.forms[key].answer]
    return (
        f"{len(new)} forms are new, {len(both) - len(other)} as before, {len(gone)} gone, "
        f"{len(other)} with other answers" + "".join(f"\n  {key}" for key in other)
    )


def ask_api(nvcc: str, run: Run, folder: Path) -> str | None:
    """What a program about the runtime prints here. None, and said, where it does not end as it should."""
    program = folder / run.key
    flags = ["-std=c++17", "-arch=sm_90", "-cudart", "shared", "-w"]
    subprocess.run([nvcc, *flags, "-o", str(program), str(run.source)], check=True)
    command = [str(program), *run.arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired as error:
        print(f"{run.key} is not recorded: {error}", file=sys.stderr)
        return None
    if done.returncode == 0:
        return done.stdout
    print(
        f"{run.key} is not recorded: exit code {done.returncode}\n{done.stdout}{done.stderr}", file=sys.stderr
    )
    return None


def printed(command: list[str], what: str) -> str:
    """What a command prints. Raises SystemExit with what it says where it fails."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise SystemExit(f"{what}: {run.stderr.strip()}")
    return run.stdout.strip()


def ask_forms(nvcc: str, families: list[str], folder: Path) -> tuple[str, dict[str, dict[str, Recorded]]]:
    """The device, and its answers by family and key."""
    runner = folder / "run_gpu"
    printed([nvcc, "-std=c++17", "-o", str(runner), str(HERE / "run_gpu.cpp"), "-ldl"], "run_gpu.cpp")
    device, answers = "", {}
    for family in families:
        plan = folder / family
        items = write_plan(plan, [family])
        print(f"{family}: {len(items)} forms", flush=True)

        def compile_module(path: Path) -> None:
            printed(
                [nvcc, "-arch=sm_90", "-cubin", str(path), "-o", str(path.with_suffix(".cubin"))], path.name
            )

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compile_module, sorted(plan.glob("m*.ptx"))))
        device = printed([str(runner), str(plan)], family)
        data = (plan / "answers.bin").read_bytes()
        answers[family] = {
            item.key: Recorded(item.question, data[item.out_offset : item.out_offset + item.out_bytes])
            for item in items
        }
    return device, answers


def main() -> int:
    known = (*PLANNED, RUNTIME)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--family", action="append", choices=known, help="again for several; default: all")
    parser.add_argument("--out", type=Path, default=ANSWERS, help="the folder of the answers")
    parser.add_argument(
        "--cuda", type=Path, default=None, help="CUDA toolkit folder (default: the one nvcc is in)"
    )
    options = parser.parse_args()
    nvcc = (
        str(options.cuda / "bin" / "nvcc")
        if options.cuda
        else shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    )
    chosen = options.family or known
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # One family at least is asked in any case: its runner names the device.
        families = [family for family in PLANNED if family in chosen] or ["memory"]
        device, answers = ask_forms(nvcc, families, folder)
        version = printed([nvcc, "--version"], nvcc).splitlines()[-1]
        about = {"device": device, "compiler": version}
        for family, forms in answers.items():
            if family in chosen:
                now = Answers(about, forms)
                print(f"{family}: {changes(now, read_answers(family))}", flush=True)
                write_answers(family, now, options.out)
        if RUNTIME not in chosen:
            return 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            texts = list(pool.map(lambda program: ask_api(nvcc, program, folder), RUNS))
        said = {program.key: text for program, text in zip(RUNS, texts, strict=True) if text is not None}
        write_runtime(said, about, options.out)
    return 0 if len(said) == len(RUNS) else 1


if __name__ == "__main__":
    raise SystemExit(main())
