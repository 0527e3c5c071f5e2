"""Notebooks of the docs, run: `python -m tests.notebooks` saves them with what they print and draw now."""

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs/notebooks").glob("*.ipynb"))


def executed(path, folder):
    """Return a notebook with the outputs that it has now, run in a folder; raise if a cell fails."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, kernel_name="python3", timeout=300, coalesce_streams=True, resources=resources)
    client.record_timing = False
    return client.execute()


def printed(notebook):
    """Return the text that each cell of code prints."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    streams = [[output for output in cell.outputs if output.output_type == "stream"] for cell in cells]
    return ["".join(output.text for output in outputs) for outputs in streams]


def main():
    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(path, folder)
        notebook.metadata.language_info = {"name": "python"}  # and not the version of Python that ran it
        nbformat.write(notebook, path)
        print(path.name)


if __name__ == "__main__":
    main()
