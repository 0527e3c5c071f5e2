"""Settings of builders: each is written once, with its default and what it means.

    class Settings(TypedDict, total=False):
        ridge: Annotated[float, Setting(1.0, "The ridge λ of the fit.")]

    def epsilon_greedy(*, epsilon: Annotated[float, "The probability ε of a random arm."] = 0.1,
                       **settings: Unpack[Settings]) -> Policy: ...

A setting that only one builder takes has its default and its meaning in the signature.  Type checkers and editors read
the names and types, `filled` reads the defaults, and `documented` makes the text that `help` shows.
"""

import functools
import inspect
import textwrap
from collections.abc import Callable, Sequence
from types import UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from explorax.errors import check_names

WIDTH = 100  # of lines of help
Builder = TypeVar("Builder", bound=Callable[..., Any])
Kind = TypeVar("Kind")


class Setting(NamedTuple):
    """The default and the meaning of a setting, for use in `Annotated`.

    Attributes:
        default: The default value.
        meaning: One or more sentences that explain the setting.
        shown: What `help` shows as the default if the value alone does not explain it.
    """

    default: Any
    meaning: str
    shown: str | None = None


def settings_in(kind: type) -> dict[str, Setting]:
    """Return the settings that a TypedDict declares, by name."""
    return {name: setting_of(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}


def setting_of(hint: Any) -> Setting:
    """Return the `Setting` that annotates a type; without a default if only a meaning is given, or nothing."""
    for found in getattr(hint, "__metadata__", ()):
        if isinstance(found, Setting):
            return found
        if isinstance(found, str):
            return Setting(inspect.Parameter.empty, found)
    return Setting(inspect.Parameter.empty, "")


def shared_settings(builder: Callable[..., Any]) -> type | None:
    """Return the TypedDict that declares the `**settings` of a builder; None if the builder has no such argument."""
    for parameter in inspect.signature(inspect.unwrap(builder)).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            (kind,) = parameter.annotation.__args__  # Unpack[kind]
            return kind
    return None


def setting_names(builder: Callable[..., Any]) -> list[str]:
    """Return the names of all settings that a builder takes, including shared settings."""
    return [parameter.name for parameter in parameters(builder)]


def defaults(**own: Any) -> Callable[[Builder], Builder]:
    """Decorate a builder whose defaults of shared settings differ from those that the TypedDict declares."""

    def decorated(builder: Builder) -> Builder:
        @functools.wraps(builder)
        def build(**settings: Any) -> Any:
            return builder(**(own | settings))

        changed: Any = build
        changed.own_defaults = own
        return changed

    return decorated


def filled(kind: type[Kind], given: Kind) -> Kind:
    """Return the given settings together with the defaults of all others.

    Args:
        kind: The TypedDict that declares the settings.
        given: Some of the settings, by name.

    Returns:
        All settings, by name.

    Raises:
        UnknownName: If one of the given settings is not declared.
    """
    defaults: Any = {name: setting.default for name, setting in settings_in(kind).items()}
    wanted: Any = given
    check_names("setting", wanted, defaults)
    return defaults | wanted


def parameters(builder: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a builder, with each shared setting in place of `**settings`."""
    kind, found = shared_settings(builder), []
    for parameter in inspect.signature(inspect.unwrap(builder)).parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            found.append(parameter)
    if kind is not None:
        hints, own = get_type_hints(kind, include_extras=True), getattr(builder, "own_defaults", {})
        for name, setting in settings_in(kind).items():
            keyword = inspect.Parameter.KEYWORD_ONLY
            default = own.get(name, setting.default)
            found.append(inspect.Parameter(name, keyword, default=default, annotation=hints[name]))
    return found


def values_in(builder: Callable[..., Any], name: str, value: Any) -> list[Any] | None:
    """Return the values in a list of values for a setting, each of which is to be tried.

    The declared type of the setting decides: `scale: float` may be 0.5, so [0.5, 1.0] are two values of it, while
    `hidden: Sequence[int]` may be [16], and [[16], [32]] are two values of it.

    Args:
        builder: The builder that takes the setting.
        name: The name of the setting.
        value: What is given for it.

    Returns:
        The values; None if what is given is one value, or fits the setting in no way, or there is no such setting.
    """
    depth = nesting(value)
    allowed = next((depths(one.annotation) for one in parameters(builder) if one.name == name), set())
    return list(value) if depth not in allowed and depth - 1 in allowed else None


def depths(hint: Any) -> set[int]:
    """Return how many lists deep the values of a type may be: 0 for one value, 1 for a list of these, and so on."""
    hint = without_setting(hint)
    origin, inside = get_origin(hint), [depths(one) for one in get_args(hint) if one is not Ellipsis]
    if origin in (Union, UnionType):
        return set().union(*inside)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {1 + depth for depth in set().union(*inside)}
    return {0}


def nesting(value: Any) -> int:
    """Return how many lists deep a value is: 0 if it is not a list."""
    return 1 + max(map(nesting, value), default=0) if isinstance(value, list | tuple) else 0


def documented(builder: Builder, ending: str) -> Builder:
    """Give a builder the signature and the docstring that `help` shows.

    The docstring explains the rule, in the words of the builder's module, and every setting with its default.  The
    summary line of a module that has the builder's name is left out, since the builder's own summary takes its place.

    Args:
        builder: A function with keyword settings.  The function itself is changed.
        ending: The further sections of the docstring, such as `Returns`, `Raises` and `Example`.

    Returns:
        The builder.
    """
    undocumented: Any = builder
    found, own = parameters(builder), str(inspect.getdoc(builder))
    listed = "\n".join(map(explained, found))
    parts = [own, rule_of(builder), f"Args:\n{listed}" if found else None, ending]
    undocumented.__doc__ = "\n\n".join(filter(None, parts))
    plain = [parameter.replace(annotation=without_setting(parameter.annotation)) for parameter in found]
    undocumented.__signature__ = inspect.signature(builder).replace(parameters=plain)
    return builder


def rule_of(builder: Callable[..., Any]) -> str:
    """Return the docstring of a builder's module, without its summary line if the module has the builder's name."""
    bare = inspect.unwrap(builder)
    module = inspect.getmodule(bare)
    text = (module and inspect.getdoc(module)) or ""
    named_alike = module is not None and module.__name__.endswith(f".{bare.__name__}")
    return text.partition("\n\n")[2] if named_alike else text


def without_setting(hint: Any) -> Any:
    """Return a type without its annotation."""
    return hint.__origin__ if hasattr(hint, "__metadata__") else hint


def explained(parameter: inspect.Parameter) -> str:
    """Return the lines of an `Args` section that explain one setting."""
    setting = setting_of(parameter.annotation)
    shown = setting.shown if parameter.default == setting.default else None
    default = f" Default: {shown or repr(parameter.default)}."
    words = (setting.meaning or "See the rule above.") + ("" if parameter.default is parameter.empty else default)
    return textwrap.fill(f"{parameter.name}: {words}", WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)
