"""What builders take: every setting is written once, with its default and what it means.

    class Settings(TypedDict, total=False):
        ridge: Annotated[float, Setting(1.0, "λ of the fit.")]

    def epsilon_greedy(*, epsilon: Annotated[float, "ε."] = 0.1, **settings: Unpack[Settings]) -> Policy: ...

A setting that only one builder takes has its default in the signature, and its meaning there or in the docstring of the
module.  Type checkers and editors read names and types, `filled` the defaults, and `documented` what help shows.
"""

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, get_type_hints

from explorax.errors import check_names

WIDTH = 100  # of lines of help
Builder = TypeVar("Builder", bound=Callable[..., Any])
Kind = TypeVar("Kind")


class Setting(NamedTuple):
    """A setting's default and meaning, to be put into `Annotated`."""

    default: Any
    meaning: str  # a sentence or more
    shown: str | None = None  # what help calls the default, where the value alone does not tell


def settings_in(kind: type) -> dict[str, Setting]:
    """Return the settings of a TypedDict by name."""
    return {name: setting_of(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}


def setting_of(hint: Any) -> Setting:
    """Return the setting that annotates a type; where there is only a meaning or nothing, one without a default."""
    for found in getattr(hint, "__metadata__", ()):
        if isinstance(found, Setting):
            return found
        if isinstance(found, str):
            return Setting(inspect.Parameter.empty, found)
    return Setting(inspect.Parameter.empty, "")


def shared_settings(builder: Callable[..., Any]) -> type | None:
    """Return the TypedDict that a builder's `**settings` are declared with, None if it has none."""
    for parameter in inspect.signature(inspect.unwrap(builder)).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            (kind,) = parameter.annotation.__args__  # Unpack[kind]
            return kind
    return None


def setting_names(builder: Callable[..., Any]) -> list[str]:
    """Return the names of all settings that a builder takes, shared ones included."""
    return [parameter.name for parameter in parameters(builder)]


def filled(kind: type[Kind], given: Kind) -> Kind:
    """Return settings together with the defaults of those that are not given.

    Args:
        kind: The TypedDict that declares them.
        given: Some of its settings.

    Raises:
        UnknownName: If one of those given is not declared.
    """
    defaults: Any = {name: setting.default for name, setting in settings_in(kind).items()}
    wanted: Any = given
    check_names("setting", wanted, defaults)
    return defaults | wanted


def parameters(builder: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a builder, with shared settings one by one in place of `**settings`."""
    kind, found = shared_settings(builder), []
    for parameter in inspect.signature(inspect.unwrap(builder)).parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            found.append(parameter)
    if kind is not None:
        hints = get_type_hints(kind, include_extras=True)
        for name, setting in settings_in(kind).items():
            keyword = inspect.Parameter.KEYWORD_ONLY
            found.append(inspect.Parameter(name, keyword, default=setting.default, annotation=hints[name]))
    return found


def documented(builder: Builder, ending: str) -> Builder:
    """Give a builder the signature and the docstring that help should show, and return it.

    The docstring gets the rule from that of the builder's module, and every setting with its default.

    Args:
        builder: A function with keyword settings; it is changed.
        ending: What builders of this kind return and raise, as sections of a docstring.
    """
    undocumented: Any = builder
    found, own = parameters(builder), str(inspect.getdoc(builder))
    module = inspect.getmodule(inspect.unwrap(builder))
    listed = "\n".join(map(explained, found))
    parts = [own, inspect.getdoc(module) if module else None, f"Args:\n{listed}" if found else None, ending]
    undocumented.__doc__ = "\n\n".join(filter(None, parts))
    plain = [parameter.replace(annotation=without_setting(parameter.annotation)) for parameter in found]
    undocumented.__signature__ = inspect.signature(builder).replace(parameters=plain)
    return builder


def without_setting(hint: Any) -> Any:
    """Return the bare type of an annotated one."""
    return hint.__origin__ if hasattr(hint, "__metadata__") else hint


def explained(parameter: inspect.Parameter) -> str:
    """Return the lines of help about one setting."""
    setting = setting_of(parameter.annotation)
    default = f" Default: {setting.shown or repr(parameter.default)}."
    words = (setting.meaning or "See the rule above.") + ("" if parameter.default is parameter.empty else default)
    return textwrap.fill(f"{parameter.name}: {words}", WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)
