"""Dictionaries into models, strictly: the one module that uses cattrs.

A plain cattrs converter turns ``5`` into ``"5"``, ``"false"`` into True and a text into an object
of defaults. This one takes a value as it is or refuses it, and says where: ``expected an array,
found a string ('hi') @ $.messages[0].parts``. Unknown members go into ``extra``.

The classes that are made by the thousand (Task, Message, Part, Artifact) read their usual form
themselves and come here for everything else, so cattrs, which takes as long to import as the
rest of this room, is imported when it is needed first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin

import attrs

from protolink_sync.errors import ModelError
from protolink_sync.models._paths import join
from protolink_sync.models._readers import (
    Reader,
    UnexpectedError,
    boolean,
    integer,
    json_object,
    text,
)

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["structure"]

_T = TypeVar("_T")

_SHOWN_FAILURES = 5


def structure(kind: type[_T], data: Any) -> _T:
    """Read an object of this room from its decoded JSON form.

    Args:
        kind: The class, or ``list[...]`` of it.
        data: What the JSON parser made.

    Raises:
        ModelError: The form is wrong. The message tells of the first five faults, ``path`` names
            the place of the first.

    Source:
        design.md 7, "A wrong type raises ModelError"; dependencies.md 9.
    """
    converter, failed = _converter()
    try:
        return converter.structure(data, kind)
    except failed as exc:
        error = exc
    except ModelError:
        raise
    except (TypeError, ValueError) as exc:
        raise ModelError(f"{exc} @ $", path="$") from exc
    faults = list(_faults(error, "$"))
    shown = [f"{message} @ {path}" for message, path in faults[:_SHOWN_FAILURES]]
    if len(faults) > _SHOWN_FAILURES:
        shown.append(f"and {len(faults) - _SHOWN_FAILURES} more")
    raise ModelError("; ".join(shown), path=faults[0][1]) from error


def _faults(error: BaseException, path: str) -> Iterator[tuple[str, str]]:
    """Walk a cattrs error, which mirrors the data, down to what is wrong and where.

    ``cattrs.transform_error`` does the same with the names of attributes; peers know only the
    names on the wire.
    """
    from cattrs import ClassValidationError, IterableValidationError

    if isinstance(error, ClassValidationError):
        members, others = error.group_exceptions()
        for fault, note in members:
            yield from _faults(fault, join(path, _wire_name(error.cl, note.name)))
        for fault in others:
            yield from _faults(fault, path)
    elif isinstance(error, IterableValidationError):
        items, others = error.group_exceptions()
        for fault, item in items:
            yield from _faults(fault, join(path, item.index))
        for fault in others:
            yield from _faults(fault, path)
    elif isinstance(error, ModelError):
        yield str(error), path + (error.path or "$")[1:]
    elif isinstance(error, KeyError):
        yield "required member missing", path
    else:
        yield str(error), path


def _wire_name(kind: Any, name: str) -> str:
    for field in attrs.fields(attrs.resolve_types(kind)):
        if field.name == name:
            return str(field.metadata.get("name", name))
    return name


@functools.cache
def _converter() -> tuple[Converter, type[Exception]]:
    from cattrs import BaseValidationError, Converter
    from cattrs.gen import make_dict_structure_fn, override

    converter = Converter(detailed_validation=True)

    def for_class(kind: Any) -> Reader:
        """Make the hook of one class, and of its content variants if it has any."""
        fields = attrs.fields(attrs.resolve_types(kind))
        names = frozenset(
            field.metadata.get("name", field.name)
            for field in fields
            if field.init and field.name not in _OURS
        )

        def reader(**hooks: Reader) -> Reader:
            overrides: dict[str, Any] = {
                field.name: override(
                    rename=field.metadata.get("name"),
                    omit=field.name in _OURS or not field.init,
                    struct_hook=hooks.get(field.name, field.metadata.get("read")),
                )
                for field in fields
            }
            made: Reader = make_dict_structure_fn(kind, converter, **overrides)
            return made

        plain = reader()
        variants = {
            word: reader(content=_object_or_anything(converter, content))
            for word, content in getattr(kind, "CONTENT_CLASSES", {}).items()
        }

        def read(value: Any, wanted: Any) -> Any:
            if not isinstance(value, Mapping):
                raise UnexpectedError("an object", value)
            data = kind._before_reading(value)
            word = data.get("type") if variants else None
            chosen = variants.get(word, plain) if isinstance(word, str) else plain
            result = chosen(data, wanted)
            for name in value:
                if name not in names:
                    result.extra[name] = value[name]
            result._after_reading(value)
            return result

        return read

    def for_list(wanted: Any) -> Reader:
        (item,) = get_args(wanted)
        collect: Reader = _sequence_hook(wanted, converter)

        def read(value: Any, wanted: Any) -> Any:
            if value is None:
                value = ()
            elif not isinstance(value, (list, tuple)):
                raise UnexpectedError("an array", value)
            return list(value) if item is Any else collect(value, wanted)

        return read

    def for_tuple(wanted: Any) -> Reader:
        read_list = for_list(list[get_args(wanted)[0]])  # type: ignore[misc]
        return lambda value, wanted: tuple(read_list(value, list))

    for scalar, hook in ((str, text), (int, integer), (bool, boolean)):
        converter.register_structure_hook(scalar, hook)
    converter.register_structure_hook_func(_is_words, text)
    converter.register_structure_hook_func(_made_of(dict), json_object)
    converter.register_structure_hook_factory(_made_of(list), for_list)
    converter.register_structure_hook_factory(_made_of(tuple), for_tuple)
    converter.register_structure_hook_factory(attrs.has, for_class)
    return converter, BaseValidationError


def _made_of(origin: Any) -> Callable[[Any], bool]:
    return lambda kind: get_origin(kind) is origin


def _is_words(kind: Any) -> bool:
    """Tell whether a type is a list of words, alone or as ``Literal[...] | str``."""
    if get_origin(kind) is Union:
        return all(member is str or _is_words(member) for member in get_args(kind))
    return get_origin(kind) is Literal


def _sequence_hook(wanted: Any, converter: Converter) -> Reader:
    from cattrs.cols import list_structure_factory

    return list_structure_factory(wanted, converter)


def _object_or_anything(converter: Converter, kind: Any) -> Reader:
    """Read content that has a class of its own; what is no object stays as it is."""

    def read(value: Any, _: Any) -> Any:
        return converter.structure(value, kind) if isinstance(value, Mapping) else value

    return read


# Written by hand in the class, not read member by member.
_OURS = frozenset({"extra", "_extra", "_state_text"})
