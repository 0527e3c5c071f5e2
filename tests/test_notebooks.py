"""Notebooks of the docs run, print what they are saved with, and can be read on the site."""

import nbformat
import pytest

from tests.notebooks import NOTEBOOKS, executed, printed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.usefixtures("on_the_cpu")
def test_notebooks_print_what_they_show(path, tmp_path):
    saved = nbformat.read(path, as_version=4)
    assert printed(executed(path, tmp_path)) == printed(saved)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_saved_with_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert sum(map(bool, printed(notebook))) >= 3
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output.get("name") == "stderr" or output.output_type == "error"]
    assert path.stat().st_size < 300_000
    kernel = notebook.metadata.kernelspec
    assert (kernel.name, kernel.display_name) == ("python3", "Python 3")
    assert notebook.metadata.language_info == {"name": "python"}  # nothing of whoever saved it


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} >= {"first_agent", "choosing_a_policy", "figure1"}
