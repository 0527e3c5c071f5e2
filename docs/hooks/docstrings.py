"""What the API reference shows beyond the source: an extension of Griffe, which reads the package for mkdocstrings.

Griffe reads signatures and docstrings without running anything.  Those of builders are put together when the package is
imported (`explorax.builders`), so they are taken from there.  Settings that builders share get a list of their meanings
and defaults.  All docstrings become Markdown, with the doctests of `Example:` as code.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import griffe
from texts import markdown

import explorax
from explorax import builders

SETTINGS = (explorax.GLMSettings, explorax.OnlineSettings, explorax.LinearSettings, explorax.DeepSettings)


class Docstrings(griffe.Extension):
    """Builders as `help` shows them, and docstrings as Markdown."""

    def on_package(self, *, pkg: griffe.Module, **others: Any) -> None:
        """Change what Griffe has read of a package."""
        for builder in documented_builders():
            describe_builder(member(pkg, builder), builder)
        for kind in SETTINGS:
            list_settings(member(pkg, kind), kind)
        for docstring in docstrings(pkg):
            docstring.value = re.sub(r"^Example:$", "Examples:", docstring.value, flags=re.MULTILINE)
            sections = docstring.parse("google", warnings=False)
            for section in sections:
                improve(section, pkg["errors"])
            vars(docstring)["parsed"] = sections  # a cached property, which templates read


def documented_builders() -> Iterator[Callable[..., Any]]:
    """Yield the builders of policies and of environments."""
    for name in explorax.list_policies():
        yield getattr(explorax, name)
    yield from explorax.environments.BUILDERS.values()


def member(package: griffe.Module, named: Any) -> Any:
    """Return what Griffe knows about a function or class."""
    return package.modules_collection[f"{named.__module__}.{named.__qualname__}"]


def describe_builder(function: griffe.Function, builder: Callable[..., Any]) -> None:
    """Give a builder the docstring and the signature that `help` shows."""
    assert builder.__doc__ is not None
    function.docstring = griffe.Docstring(inspect.cleandoc(builder.__doc__), parent=function)
    function.parameters = griffe.Parameters(
        *(
            griffe.Parameter(
                parameter.name,
                annotation=expression(parameter.annotation, function.module),
                kind=griffe.ParameterKind(parameter.kind.description),
                default=None if parameter.default is parameter.empty else repr(parameter.default),
            )
            for parameter in inspect.signature(builder).parameters.values()
        )
    )


def expression(hint: Any, scope: griffe.Module) -> griffe.Expr | str | None:
    """Return a type as an expression whose names can be linked."""
    words = re.sub(r"\b(Literal|Union)\b", r"typing.\1", inspect.formatannotation(hint))
    tree = ast.parse(words, mode="eval")
    return griffe.safe_get_annotation(tree.body, parent=scope)


def list_settings(kind: griffe.Class, settings: type) -> None:
    """Add types, meanings and defaults of shared settings to the docstring of their class."""
    for name, hint in get_type_hints(settings).items():
        kind[name].annotation = expression(hint, kind.module)
    hints = inspect.get_annotations(settings)
    lines = [
        builders.explained(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[name])
        )
        for name, one in builders.settings_in(settings).items()
    ]
    assert kind.docstring is not None
    kind.docstring.value += "\n\nAttributes:\n" + "\n".join(lines)


def docstrings(found: griffe.Object) -> Iterator[griffe.Docstring]:
    """Yield the docstrings of an object and of all that is defined in it."""
    if found.docstring is not None:
        yield found.docstring
    for inner in found.members.values():
        if isinstance(inner, griffe.Object):
            yield from docstrings(inner)


def improve(section: griffe.DocstringSection, errors: griffe.Module) -> None:
    """Turn the words of a section into Markdown, and link the errors that it names; code stays as it is."""
    if isinstance(section, griffe.DocstringSectionExamples):
        section.value = [(kind, text if kind.value == "examples" else markdown(text)) for kind, text in section.value]
    elif isinstance(section.value, str):
        section.value = markdown(section.value)
    elif isinstance(section.value, list):
        for item in section.value:
            item.description = markdown(without_default(item))
            if str(item.annotation) in errors.members:
                item.annotation = griffe.ExprName(str(item.annotation), parent=errors)
    else:
        section.value.description = markdown(section.value.description)


def without_default(item: griffe.DocstringElement) -> str:
    """Return the description of an argument without the sentence on its default, if the page shows the same anyway."""
    default = getattr(item, "default", None)
    return re.sub(rf"\s+Default: (`?){re.escape(str(default))}\1\.$", "", item.description)
