"""The hardware's recorded answers, kept a family of forms: ``answers/FAMILY.txt`` and ``answers/FAMILY.xz``.

The text says which device and compiler gave them, then holds a line a form: key, bytes of its answer,
digest of the question (kernel and operands), digest of the answer, divided by tabs. A diff of it shows the
forms that are new, ask something else or have another answer. The .xz holds the answers, one behind the other
in that order. What the programs about the runtime printed is plain text, ``answers/runtime/PROGRAM.txt``,
with the same two lines in front. Standard library only.
"""

import hashlib
import lzma
from dataclasses import dataclass, field
from pathlib import Path

ANSWERS = Path(__file__).resolve().with_name("answers")
RUNTIME = "runtime"
"""What stands for a family where programs about the runtime are meant."""


@dataclass(frozen=True)
class Recorded:
    """One form. question: the digest of its kernel and operands; answer: raw bytes, an element a thread."""

    question: str
    answer: bytes


@dataclass(frozen=True)
class Answers:
    """What the hardware said to one family, by key of the form. ``about``: device and compiler."""

    about: dict[str, str] = field(default_factory=dict)
    forms: dict[str, Recorded] = field(default_factory=dict)


def digest(data: bytes) -> str:
    """Enough of it to see a difference."""
    return hashlib.sha256(data).hexdigest()[:16]


def record_command(family: str) -> str:
    """What records a family, or the programs about the runtime, on a machine with the hardware."""
    return f"python3 tests/machine/conformance/record.py --family {family}"


def read_answers(family: str, folder: Path = ANSWERS) -> Answers:
    """Empty where nothing is recorded. Raises ValueError for files that do not belong together."""
    index = folder / f"{family}.txt"
    if not index.exists():
        return Answers()
    data = lzma.decompress(index.with_suffix(".xz").read_bytes())
    answers = Answers()
    at = 0
    for line in index.read_text().splitlines():
        if line.startswith("# "):
            name, _, value = line[2:].partition(": ")
            answers.about[name] = value
            continue
        key, size, question, checked = line.split("\t")
        answer = data[at : at + int(size)]
        at += int(size)
        if digest(answer) != checked:
            raise ValueError(f"{index}: the answer of {key} is not the one that was recorded")
        answers.forms[key] = Recorded(question, answer)
    if at != len(data):
        raise ValueError(f"{index}: {len(data)} bytes of answers for forms of {at}")
    return answers


def write_answers(family: str, answers: Answers, folder: Path = ANSWERS) -> None:
    """Replaces what was recorded of the family."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"# {name}: {value}" for name, value in answers.about.items()]
    lines += [
        f"{key}\t{len(form.answer)}\t{form.question}\t{digest(form.answer)}"
        for key, form in answers.forms.items()
    ]
    data = b"".join(form.answer for form in answers.forms.values())
    (folder / f"{family}.txt").write_text("\n".join(lines) + "\n")
    (folder / f"{family}.xz").write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


def read_runtime(folder: Path = ANSWERS) -> dict[str, str]:
    """What each program about the runtime printed, by its key."""
    printed: dict[str, str] = {}
    for file in sorted((folder / RUNTIME).glob("*.txt")):
        lines = file.read_text().splitlines(keepends=True)
        printed[file.stem] = "".join(line for line in lines if not line.startswith("# "))
    return printed


def write_runtime(printed: dict[str, str], about: dict[str, str], folder: Path = ANSWERS) -> None:
    """Replaces what these programs printed. Others stay."""
    (folder / RUNTIME).mkdir(parents=True, exist_ok=True)
    head = "".join(f"# {name}: {value}\n" for name, value in about.items())
    for key, text in printed.items():
        (folder / RUNTIME / f"{key}.txt").write_text(head + text)
