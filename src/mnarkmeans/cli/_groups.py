"""Options that belong together travel together: a verb takes dataclasses, typer sees their fields.

@dataclass                                @app.command()
class Reading:                            @spread
    delimiter: Delimiter = None           def fit(data: Data, reading: Reading): ...
    header: Header = None                 # mnarkmeans fit DATA --delimiter ... --header ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Any, get_type_hints


def spread(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with every parameter that is a dataclass replaced by the fields of that class.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> @spread
    ... def show(name: str, point: Point) -> None:
    ...     print(name, point)
    >>> list(inspect.signature(show).parameters)
    ['name', 'x', 'y']
    >>> show(name="P", x=1, y=2)
    P Point(x=1, y=2)
    """
    hints = get_type_hints(verb, include_extras=True)
    own = inspect.signature(verb).parameters.values()
    flat = [p for parameter in own for p in _flat(parameter.name, hints, parameter.default)]

    @wraps(verb)
    def command(**options: Any) -> None:
        verb(**{p.name: _gathered(p.name, hints[p.name], options) for p in own})

    command.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in flat}
    del command.__wrapped__  # which has the other signature
    return command


def words(group: Any) -> list[str]:
    """What was said to a group of options, as it would be typed; what is default is not said.

    Examples
    --------
    >>> from typing import Annotated
    >>> import typer
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     x: Annotated[list | None, typer.Option("--x")] = None
    ...     up: Annotated[bool, typer.Option("--up")] = False
    >>> words(Point(["1", "2"], True))
    ['--x', '1', '--x', '2', '--up']
    """
    said: list[str] = []
    hints = get_type_hints(type(group), include_extras=True)
    for field in fields(group):
        value, default = getattr(group, field.name), _default(field)
        names = _names(hints[field.name])
        if value is None or value == default or not names:
            continue
        name = names[-1]
        if isinstance(value, bool):
            said.append(name.split("/")[0 if value else 1])
        else:
            for one in value if isinstance(value, list) else [value]:
                said += [name, str(one)]
    return said


def _names(annotation: Any) -> list[str]:
    """The names of an option; typer takes the first one for a default until it builds a command."""
    return [
        name
        for option in getattr(annotation, "__metadata__", ())
        for name in (option.default, *(option.param_decls or ()))
        if isinstance(name, str) and name.startswith("-")
    ]


def _flat(name: str, hints: dict[str, Any], default: Any) -> list[Parameter]:
    kind = hints[name]
    if not is_dataclass(kind):
        return [Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)]
    inner = get_type_hints(kind, include_extras=True)
    return [p for field in fields(kind) for p in _flat(field.name, inner, _default(field))]


def _default(field: Any) -> Any:
    if field.default is not MISSING:
        return field.default
    return Parameter.empty if field.default_factory is MISSING else field.default_factory()


def _gathered(name: str, kind: Any, options: dict[str, Any]) -> Any:
    if not is_dataclass(kind):
        return options[name]
    inner = get_type_hints(kind, include_extras=True)
    return kind(**{f.name: _gathered(f.name, inner[f.name], options) for f in fields(kind)})  # type: ignore[operator]
