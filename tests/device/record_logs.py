"""Record compute-sanitizer's logs of programs with known faults, on a machine with a GPU.

    python tests/device/record_logs.py OUT --sanitizer PATH [--sanitizer PATH ...]

writes OUT/VERSION/TOOL/PROGRAM.{txt,xml,json}: text log, XML log, and exit code with standard output. The
tests of the log readers run on what is kept of it under tests/device/logs.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from verify.device.interface import TOOLS, Tool  # noqa: E402
from verify.device.sanitizer.options import Version, arguments  # noqa: E402

TRIPWIRES = ROOT / "verify" / "device" / "sanitizer" / "tripwires"
FAULTS = Path(__file__).parent / "programs" / "faults.cu"
NAMES = tuple(re.findall(r'is\("(\w+)"\)', FAULTS.read_text()))


@dataclass(frozen=True)
class Recording:
    """One program under one tool of one version."""

    sanitizer: Path
    version: Version
    tool: Tool
    name: str
    command: tuple[str, ...]


def version_of(sanitizer: Path) -> Version:
    text = subprocess.run([sanitizer, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^Version (\d+(?:\.\d+)+)", text, re.MULTILINE)
    assert found, text
    return tuple(map(int, found[1].split(".")))


def build(source: Path, folder: Path, arch: str) -> Path:
    program = folder / source.stem
    code = f"arch=compute_{arch},code=[sm_{arch},compute_{arch}]"
    flags = ["-std=c++17", "-lineinfo", "-cudart", "static", "-gencode", code]
    subprocess.run(["nvcc", *flags, "-o", program, source], check=True)
    return program


def record(out: Path, recording: Recording) -> str:
    folder = out / ".".join(map(str, recording.version[:3])) / recording.tool
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / recording.name
    logs = ["--log-file", f"{stem}.txt", "--xml", "--save", f"{stem}.xml"]
    argv: list[str | Path] = [
        recording.sanitizer,
        *arguments(recording.tool, recording.version),
        *logs,
        *recording.command,
    ]
    kept: dict[str, object]
    try:
        end = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        kept = {"code": end.returncode, "stdout": end.stdout, "stderr": end.stderr}
    except subprocess.TimeoutExpired:
        kept = {"code": None, "stdout": "", "stderr": "timeout"}
    kept["argv"] = [Path(str(word)).name for word in argv]
    stem.with_suffix(".json").write_text(json.dumps(kept, indent=1))
    return f"{folder.parent.name} {recording.tool} {recording.name}: {kept['code']}"


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sanitizer", type=Path, action="append", required=True)
    parser.add_argument("--arch", default="90")
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args()
    programs = options.out / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    sources = [FAULTS, *sorted(TRIPWIRES.glob("*.cu"))]
    with ThreadPoolExecutor(options.jobs) as pool:
        faults, *tripwires = pool.map(lambda source: build(source, programs, options.arch), sources)
        commands: dict[str, tuple[str, ...]] = {name: (str(faults), name) for name in NAMES}
        commands |= {f"tripwire_{program.stem}": (str(program),) for program in tripwires}
        recordings = [
            Recording(sanitizer, version_of(sanitizer), tool, name, command)
            for sanitizer in options.sanitizer
            for tool in TOOLS
            for name, command in commands.items()
        ]
        for line in pool.map(lambda recording: record(options.out, recording), recordings):
            print(line, flush=True)


if __name__ == "__main__":
    main()
