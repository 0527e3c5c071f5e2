"""Notebooks as pages of the site: what they say, what they do and what came of it when they were saved."""

from pathlib import PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

TEMPLATE = """{%- extends "markdown/index.md.j2" -%}
{% block stream %}
```text
{{ output.text.rstrip() }}
```
{% endblock stream %}
{% block data_text scoped %}
```text
{{ output.data["text/plain"].rstrip() }}
```
{% endblock data_text %}
"""
INTRODUCTION = "\n\nThis page is [a notebook]({name}) that you can download and run.\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook, and the images in it, to the files of the site."""
    exporter = MarkdownExporter()
    exporter.raw_template = TEMPLATE
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        path = PurePosixPath(notebook.src_uri)
        about = {"unique_key": path.stem, "output_files_dir": f"{path.stem}_files"}
        text, resources = exporter.from_filename(str(notebook.abs_src_path), about)
        heading, _, rest = text.strip().partition("\n")
        content = heading + INTRODUCTION.format(name=path.name) + rest
        files.append(File.generated(config, str(path.with_suffix(".md")), content=content))
        for name, image in resources["outputs"].items():
            files.append(File.generated(config, str(path.parent / name), content=image))
    return files
