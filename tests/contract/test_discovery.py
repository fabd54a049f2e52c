"""Which contract is meant, and which files it means: what was named is what is verified, or nothing is."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from pathlib import Path

import pytest

from verify.contract.discovery import (
    ContractError,
    contract_files_below,
    find_contracts,
    fixture_file,
    load_contract,
    source_file,
)
from verify.contract.model import Contract
from verify.gate.blame import blame
from verify.gate.gate import argument_of
from verify.gate.selection import Selection, keep_folder

EXAMPLE = Path(__file__).parents[2] / "examples" / "row_softmax"


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A folder with the example's kernel."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "kernel"))


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_cu_of_another_contract_is_refused(kernel: Path) -> None:
    """Fault: ``verify run fast.cu`` verifies slow.cu, which its contract names."""
    (kernel / "row_softmax.cu").rename(kernel / "slow.cu")
    (kernel / "row_softmax.cu").write_text("// another kernel\n")
    edit(kernel / "row_softmax_contract.py", 'source="row_softmax.cu"', 'source="slow.cu"')
    with pytest.raises(ContractError, match=r"row_softmax_contract\.py is the contract of slow\.cu"):
        find_contracts([str(kernel / "row_softmax.cu")])
    (contract,) = find_contracts([str(kernel / "row_softmax_contract.py")])
    assert source_file(contract) == kernel / "slow.cu"


def test_a_linked_contract_belongs_to_the_folder_of_its_link(kernel: Path, tmp_path: Path) -> None:
    """Fault: the kernel beside the link's target is verified, not the one beside the link."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "row_softmax_contract.py").symlink_to(kernel / "row_softmax_contract.py")
    with pytest.raises(ContractError, match=r"there is no row_softmax\.cu beside the contract"):
        load_contract(other / "row_softmax_contract.py")
    shutil.copy(kernel / "row_softmax.cu", other)
    (contract,) = find_contracts([str(other / "row_softmax.cu")])
    assert source_file(contract).parent == other == fixture_file(contract).parent
    assert len(find_contracts([str(tmp_path)])) == 2


@pytest.mark.parametrize("missing", ["flash_decode.cu", "flash_decode.toml"])
def test_a_users_includes_do_not_find_files_of_the_suite(kernel: Path, missing: str) -> None:
    """Fault: a contract under a name of the suite's verifies the suite's kernel, or runs its fixtures."""
    for file in list(kernel.iterdir()):
        if file.is_file():
            file.rename(kernel / file.name.replace("row_softmax", "flash_decode"))
    contract = kernel / "flash_decode_contract.py"
    edit(contract, 'name="row_softmax"', 'name="flash_decode"')
    edit(contract, 'source="row_softmax.cu"', 'source="flash_decode.cu"')
    assert source_file(load_contract(contract)).parent == kernel
    (kernel / missing).unlink()
    if missing.endswith(".cu"):
        with pytest.raises(ContractError, match=r"there is no flash_decode\.cu"):
            load_contract(contract)
    else:
        assert not fixture_file(load_contract(contract)).exists()


def test_a_name_of_two_contracts_is_refused(kernel: Path) -> None:
    """Fault: the suite's own kernel is verified where the folder has one of the same name."""
    (kernel / "row_softmax_contract.py").rename(kernel / "flash_decode_contract.py")
    with pytest.raises(ContractError, match=r"flash_decode: is ambiguous, .* or .*: name the file"):
        find_contracts(["flash_decode"], [kernel])
    (own,) = find_contracts(["flash_decode"], [kernel.parent / "elsewhere"])
    assert argument_of(own) == "flash_decode"


def test_the_repeat_line_names_the_file(kernel: Path) -> None:
    """Fault: a command with a file that is not there, made from the contract's name."""
    file = kernel.rename(kernel.with_name("a b$c")) / "row_softmax_contract.py"
    edit(file, 'name="row_softmax"', 'name="other"')
    (file.parent / "row_softmax.toml").rename(file.parent / "other.toml")
    edit(file.parent / "other.toml", 'kernel = "row_softmax"', 'kernel = "other"')
    assert argument_of(load_contract(file)) == f"'{file}'"


def test_findings_of_namesakes_have_folders_of_their_own(kernel: Path, tmp_path: Path) -> None:
    """Fault: the second of two contracts of one name overwrites what repeats the first one's finding."""
    shutil.copytree(kernel, tmp_path / "other")
    both = find_contracts([str(tmp_path)])
    selection = Selection(both, keep=Path("kept"))
    assert len({keep_folder(selection, contract) for contract in both}) == 2
    assert keep_folder(dataclasses.replace(selection, contracts=both[:1]), both[0]) == Path("kept")


@pytest.mark.parametrize("name", ["build", "dist", "linked"])
def test_no_folder_is_skipped_for_its_name(kernel: Path, tmp_path: Path, name: str) -> None:
    """Fault: kernels in folders of some names, or behind links, are not verified, and nothing says so."""
    top = tmp_path / "top"
    top.mkdir()
    if name == "linked":
        (top / name).symlink_to(kernel)
        (kernel / "back").symlink_to(top)
    else:
        kernel.rename(top / name)
    assert [f.parent.name for f in contract_files_below(top)] == [name]


def test_a_linked_folder_is_searched_once(kernel: Path) -> None:
    """Fault: a kernel is verified twice, or a cycle of links is followed endlessly."""
    (kernel / "again").symlink_to(kernel)
    (kernel.parent / "a").symlink_to(kernel)
    assert [f.parent for f in contract_files_below(kernel.parent)] == [kernel]


def test_a_contract_for_no_architecture_is_refused(kernel: Path) -> None:
    """Fault: clean, since nothing ran that could find anything."""
    file = kernel / "row_softmax_contract.py"
    edit(file, 'source="row_softmax.cu"', 'source="row_softmax.cu", architectures=()')
    with pytest.raises(ContractError, match="architectures: is empty"):
        load_contract(file)


SHAPES = "def source():\n    return 'row_softmax.cu'\n"


@pytest.mark.parametrize(
    "uses",
    [
        "import shapes\nSOURCE = shapes.source()\n",
        "from shapes import source\nSOURCE = source()\n",
        "from .shapes import source\nSOURCE = source()\n",
        "def lazily():\n    import shapes\n    return shapes.source()\nSOURCE = lazily()\n",
        "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\n"
        "from shapes import source\nSOURCE = source()\n",
        "import parts.inner\nSOURCE = parts.inner.source()\n",
    ],
)
def test_a_contract_imports_files_of_its_own_folder_only(kernel: Path, tmp_path: Path, uses: str) -> None:
    """Fault: no import from beside a contract; or the first folder's module serves the second one too."""
    contracts = []
    for name in ("one", "two"):
        folder = Path(shutil.copytree(kernel, tmp_path / name))
        source = f"{name}.cu"
        (folder / "row_softmax.cu").rename(folder / source)
        text = SHAPES.replace("row_softmax.cu", source)
        (folder / "shapes.py").write_text(text)
        (folder / "parts").mkdir()
        inner = "import shapes\ndef source():\n    return shapes.source()\n"
        (folder / "parts" / "inner.py").write_text(inner)
        file = folder / "row_softmax_contract.py"
        edit(file, 'source="row_softmax.cu"', "source=SOURCE")
        file.write_text(uses + file.read_text())
        contracts.append(load_contract(file))
    assert [source_file(c).name for c in contracts] == ["one.cu", "two.cu"]
    assert not {"shapes", "parts"} & set(sys.modules)
    assert not any(str(tmp_path) in path for path in sys.path)


def test_an_edited_module_is_read_again(kernel: Path) -> None:
    """Fault: bytecode of the same second and size stands in for the source."""
    file = kernel / "row_softmax_contract.py"
    edit(file, 'source="row_softmax.cu"', "source=SOURCE")
    file.write_text("from shapes import SOURCE\n" + file.read_text())
    for source in ("first.cu", "other.cu"):
        (kernel / source).write_text("")
        (kernel / "shapes.py").write_text(f"SOURCE = {source!r}\n")
        assert load_contract(file).source == source


def test_an_error_beside_the_contract_is_the_user_s(kernel: Path) -> None:
    """Fault: what a module beside the contract raises is called a defect of the suite."""
    (kernel / "shapes.py").write_text("def fails(case):\n    raise KeyError('oops')\n")
    file = kernel / "row_softmax_contract.py"
    edit(file, "reference=softmax", "reference=fails")
    file.write_text("from shapes import fails\n" + file.read_text())
    contract: Contract = load_contract(file)
    with pytest.raises(KeyError) as caught:
        contract.reference(None)  # type: ignore[arg-type]
    message, code = blame(caught.value)
    assert (message, code) == (f"{kernel / 'shapes.py'}:2: in fails: KeyError: oops", 2)


@pytest.mark.parametrize("raised", ["SystemExit(0)", "GeneratorExit", "type('Own', (BaseException,), {})"])
def test_any_exception_of_a_contract_is_reported(kernel: Path, raised: str) -> None:
    """Fault: a BaseException ends the command with its own code, or with a traceback."""
    file = kernel / "row_softmax_contract.py"
    file.write_text(f"raise {raised}\n" + file.read_text())
    with pytest.raises(ContractError, match=r"row_softmax_contract\.py: (SystemExit|GeneratorExit|Own)"):
        load_contract(file)
