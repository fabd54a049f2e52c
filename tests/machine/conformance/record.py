"""Records the hardware's answers: ``python3 tests/machine/conformance/record.py [--out FILE] [--cuda DIR]``.

Needs an sm_90 GPU, its driver, and nvcc 13.0 or later (nothing else: standard library only). Writes one
compact file that ``test_conformance.py`` compares the CPU device with; keep it as
``tests/machine/conformance/answers.xz``.
"""

import argparse
import concurrent.futures
import hashlib
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from conformance.api import RUNS, Run  # type: ignore[import-not-found]  # noqa: E402
from conformance.plan import Item, all_keys, write_plan  # type: ignore[import-not-found]  # noqa: E402


def digest(folder: Path) -> str:
    """Of everything that the answers depend on: kernels, operands, order."""
    total = hashlib.sha256()
    for path in [*sorted(folder.glob("m*.ptx")), folder / "inputs.bin", folder / "plan.txt"]:
        total.update(path.read_bytes())
    return total.hexdigest()


def write_answers(
    path: Path, items: list[Item], data: bytes, about: dict[str, str], api: dict[str, str]
) -> None:
    """Header (JSON, one line), then the raw answers one behind the other, all of it in xz."""
    header = {"about": about, "items": [[i.key, i.out_offset, i.out_bytes] for i in items], "api": api}
    blob = json.dumps(header, separators=(",", ":")).encode() + b"\n" + data
    path.write_bytes(lzma.compress(blob, preset=9 | lzma.PRESET_EXTREME))


def changes(items: list[Item], data: bytes) -> str:
    """How the answers differ from those that lie beside this file."""
    before: dict[str, bytes] = {}
    if (HERE / "answers.xz").exists():
        header, _, old = lzma.decompress((HERE / "answers.xz").read_bytes()).partition(b"\n")
        before = {key: old[at : at + size] for key, at, size in json.loads(header)["items"]}
    now = {item.key: data[item.out_offset : item.out_offset + item.out_bytes] for item in items}
    other = sorted(key for key in now.keys() & before.keys() if now[key] != before[key])
    same = len(now.keys() & before.keys()) - len(other)
    return (
        f"{len(now.keys() - before.keys())} forms are new, {same} as before, "
        f"{len(before.keys() - now.keys())} gone, {len(other)} with other answers"
        + "".join(f"\n  {key}" for key in other)
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=HERE / "answers.xz")
    parser.add_argument(
        "--cuda", type=Path, default=None, help="CUDA toolkit folder (default: the one nvcc is in)"
    )
    options = parser.parse_args()
    nvcc = (
        str(options.cuda / "bin" / "nvcc")
        if options.cuda
        else shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        items = write_plan(folder, set(all_keys()))
        print(f"{len(items)} forms, compiling", flush=True)

        def compile_module(path: Path) -> str:
            command = [nvcc, "-arch=sm_90", "-cubin", str(path), "-o", str(path.with_suffix(".cubin"))]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            return "" if run.returncode == 0 else f"{path.name}: {run.stderr.strip()}"

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            errors = [e for e in pool.map(compile_module, sorted(folder.glob("m*.ptx"))) if e]
        runner = folder / "run_gpu"
        built = subprocess.run(
            [nvcc, "-std=c++17", "-o", str(runner), str(HERE / "run_gpu.cpp"), "-ldl"],
            capture_output=True,
            text=True,
            check=False,
        )
        if built.returncode != 0:
            errors.append(built.stderr.strip())
        if errors:
            print("\n".join(errors), file=sys.stderr)
            return 1
        run = subprocess.run([str(runner), str(folder)], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            print(run.stderr.strip(), file=sys.stderr)
            return 1
        version = (
            subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False)
            .stdout.strip()
            .splitlines()[-1]
        )
        about = {"device": run.stdout.strip(), "compiler": version, "digest": digest(folder)}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            texts = list(pool.map(lambda program: ask_api(nvcc, program, folder), RUNS))
        api = {program.key: text for program, text in zip(RUNS, texts, strict=True) if text is not None}
        data = (folder / "answers.bin").read_bytes()
        print(changes(items, data), flush=True)
        write_answers(options.out, items, data, about, api)
    print(f"{options.out}: {options.out.stat().st_size} bytes, {about['device']}")
    return 0 if len(api) == len(RUNS) else 1


if __name__ == "__main__":
    raise SystemExit(main())
