"""Arrays of the host that behave like CuPy's: an array module over numpy for the host's device runtime.

They keep to what CuPy does differently from numpy, so that code that would fail on a GPU fails here: numpy takes no such
array for one of its own, the two kinds do not mix, a scalar result is an array, most universal functions do not
accumulate or reduce, and there are no element types beyond bfloat16 that numpy itself lacks.

Source: the CuPy user guide, "Differences between CuPy and NumPy" and "Interoperability".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

import numpy as np

from dtir.execute.backends.cupy_clocks import Buffer
from dtir.execute.dtypes import Array, is_extended

_FROM_HOST = frozenset({"array", "asarray", "asanyarray", "ascontiguousarray", "full", "full_like"})
"""Functions that take arrays of the host."""

_REDUCE = frozenset({"add", "multiply"})
_AT = frozenset({"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"})
"""Universal functions whose methods ``reduce`` and ``accumulate``, and ``at``, CuPy has."""

_METHODS = frozenset(
    [
        "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "copy", "cumprod", "cumsum", "diagonal",
        "dot", "fill", "flatten", "max", "mean", "min", "nonzero", "partition", "prod", "ravel", "repeat", "reshape",
        "round", "sort", "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var", "view",
    ]
)  # fmt: skip

_VALUES = frozenset({"shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides", "flags"})


class Work(Protocol):
    """Who is told what the array module does."""

    def done(
        self,
        what: str,
        reads: list[Buffer],
        results: list[np.ndarray[Any, Any]],
        written: list[Buffer],
        again: Callable[[], Any],
    ) -> list[Buffer | None]:
        """A piece of work reads and writes memory, and makes arrays.

        Args:
            again: does it once more.

        Returns:
            The memory of every result: its own, or that of the array of which it is a view.
        """
        ...

    def uploaded(self, what: str) -> None:
        """Data come from the host."""
        ...

    def waited(self, what: str, buffer: Buffer | None) -> None:
        """The host waits for data."""
        ...


class HostArray:
    """An array of a device that is played on the host.

    Args:
        array: the elements.
        buffer: their memory; None where there is none.
        module: the array module that it belongs to.
    """

    __slots__ = ("_module", "array", "buffer")
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, array: np.ndarray[Any, Any], buffer: Buffer | None, module: HostModule) -> None:
        self.array = array
        self.buffer = buffer
        self._module = module

    # -- numpy does not get it ------------------------------------------------------------------------------------------

    def __array__(self, *_: object, **__: object) -> np.ndarray[Any, Any]:
        raise TypeError("implicit conversion of a device array to a numpy array is not allowed: use .get()")

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **named: Any) -> Any:
        found = self._module.ufunc(function)
        return found(*inputs, **named) if method == "__call__" else getattr(found, method)(*inputs, **named)

    def __array_function__(self, function: Any, types: Any, arguments: Any, named: Any) -> Any:
        del types
        return getattr(self._module, function.__name__)(*arguments, **named)

    # -- what it is ------------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name in _VALUES:
            return getattr(self.array, name)
        if name in _METHODS:

            def method(*arguments: Any, **named: Any) -> Any:
                return self._module.call(name, getattr(self.array, name), arguments, named, also=self)

            return method
        if name in ("T", "real", "imag"):
            return self._module.call(name, lambda: getattr(self.array, name), (), {}, also=self)
        raise AttributeError(f"a device array has no {name}")

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Any]:
        if self.array.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[place] for place in range(len(self.array)))

    def __getitem__(self, index: Any) -> Any:
        def get(where: Any) -> Any:
            found: Any = self.array[where]
            if isinstance(found, np.generic):  # one element is a view, too
                place: tuple[Any, ...] = cast("Any", where) if isinstance(where, tuple) else (where,)
                return self.array[(*place, ...)]
            return found

        return self._module.call("getitem", get, (index,), {}, also=self, indexing=True)

    def __setitem__(self, index: Any, value: Any) -> None:
        def put(where: Any, new: Any) -> None:
            self.array[where] = new

        self._module.call("setitem", put, (index, value), {}, also=self, indexing=True, writes=self)

    # -- to the host -------------------------------------------------------------------------------------------------------

    def get(self) -> np.ndarray[Any, Any]:
        """A copy for the host, which waits for it."""
        self._module.work.waited("get", self.buffer)
        return self.array.copy()

    def item(self) -> Any:
        return self.get().item()

    def tolist(self) -> Any:
        return self.get().tolist()

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __index__(self) -> int:
        return self.get().__index__()

    def __repr__(self) -> str:
        return f"HostArray({self.array!r})"


def _operator(name: str) -> Callable[..., Any]:
    def run(self: HostArray, *others: Any) -> Any:
        function = getattr(self.array, name)
        found = self._module.call(  # pyright: ignore[reportPrivateUsage]
            name,
            function,
            others,
            {},
            also=self,
            writes=self if name.startswith("__i") and name != "__invert__" else None,
        )
        return self if name.startswith("__i") and name != "__invert__" else found

    return run


for _name in (
    *(f"__{side}{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor",
                                       "lshift", "rshift", "matmul") for side in ("", "r", "i")),
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__neg__", "__pos__", "__abs__", "__invert__",
):  # fmt: skip
    setattr(HostArray, _name, _operator(_name))


class _Ufunc:
    """A universal function and those of its methods that CuPy has."""

    def __init__(self, module: HostModule, function: Any) -> None:
        self._module = module
        self._function = function
        self.__name__: str = function.__name__

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._module.call(self.__name__, self._function, arguments, named)

    def reduce(self, *arguments: Any, **named: Any) -> Any:
        self._require("reduce", _REDUCE)
        return self._module.call(f"{self.__name__}.reduce", self._function.reduce, arguments, named)

    def accumulate(self, *arguments: Any, **named: Any) -> Any:
        self._require("accumulate", _REDUCE)
        return self._module.call(f"{self.__name__}.accumulate", self._function.accumulate, arguments, named)

    def at(self, target: HostArray, *arguments: Any) -> None:
        self._require("at", _AT)
        self._module.call(
            f"{self.__name__}.at", self._function.at, (target, *arguments), {}, indexing=True, writes=target
        )

    def _require(self, method: str, known: frozenset[str]) -> None:
        if self.__name__ not in known:
            raise NotImplementedError(f"{self.__name__}.{method} is not supported on a device")


class _Space:
    """A part of the array module, such as ``linalg``."""

    def __init__(self, module: HostModule, space: Any) -> None:
        self._module = module
        self._space = space

    def __getattr__(self, name: str) -> Any:
        return self._module.wrapped(getattr(self._space, name))


class HostModule:
    """The array module.

    Args:
        work: told of everything that is done.
    """

    def __init__(self, work: Work) -> None:
        self.work = work

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.wrapped(getattr(np, name))

    def wrapped(self, found: Any) -> Any:
        """Something of numpy's as this module has it."""
        if isinstance(found, np.ufunc):
            return self.ufunc(found)
        if isinstance(found, type) or not (callable(found) or hasattr(found, "__path__") or hasattr(found, "__file__")):
            return found
        if not callable(found):
            return _Space(self, found)

        def run(*arguments: Any, **named: Any) -> Any:
            return self.call(found.__name__, found, arguments, named)

        return run

    def ufunc(self, function: Any) -> Any:
        """A universal function of this module."""
        return _Ufunc(self, function)

    def call(
        self,
        what: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        *,
        also: HostArray | None = None,
        indexing: bool = False,
        writes: HostArray | None = None,
    ) -> Any:
        """Do it: arguments without their wrapping, results wrapped, and who keeps the books is told."""
        touched: list[HostArray] = [] if also is None else [also]
        takes = what in _FROM_HOST or indexing
        plain = [self._plain(argument, touched, what, takes) for argument in arguments]
        options = {name: self._plain(value, touched, what, takes) for name, value in named.items()}
        if indexing and what == "setitem" and isinstance(arguments[1], np.ndarray):
            raise TypeError("a numpy array cannot be put into a device array: bring it to the device first")
        found = function(*plain, **options)
        target = writes if writes is not None else cast("HostArray | None", named.get("out"))
        reads = [one.buffer for one in touched if one.buffer is not None and one is not target]
        written = [target.buffer] if target is not None and target.buffer is not None else []
        if found is NotImplemented or found is None:
            if found is None:
                self.work.done(what, reads, [], written, lambda: function(*plain, **options))
            return found
        results: list[np.ndarray[Any, Any]] = []
        shaped = self._collect(found, results)
        buffers = self.work.done(what, reads, results, written, lambda: function(*plain, **options))
        wrapped = [HostArray(array, buffer, self) for array, buffer in zip(results, buffers, strict=True)]
        return _rebuilt(shaped, wrapped)

    def _plain(self, argument: Any, touched: list[HostArray], what: str, takes: bool) -> Any:
        match argument:
            case HostArray():
                touched.append(argument)
                return argument.array
            case np.ndarray():
                if not takes:
                    raise TypeError(f"{what}: a numpy array does not mix with device arrays")
                self.work.uploaded(what)
                return cast("Array", argument)
            case list():
                return [self._plain(item, touched, what, takes) for item in cast("list[Any]", argument)]
            case tuple():
                return tuple(self._plain(item, touched, what, takes) for item in cast("tuple[Any, ...]", argument))
            case _:
                return argument

    def _collect(self, found: Any, results: list[np.ndarray[Any, Any]]) -> Any:
        """Arrays of a result in a list, and its form with their numbers in their places."""
        if isinstance(found, (np.ndarray, np.generic)):
            array: np.ndarray[Any, Any] = np.asarray(cast("Array", found))
            if array.dtype.kind == "O" or (is_extended(array.dtype) and array.dtype.name != "bfloat16"):
                raise TypeError(f"a device has no arrays of {array.dtype}")
            results.append(array)
            return _Number(len(results) - 1)
        if isinstance(found, (list, tuple)):
            return [self._collect(item, results) for item in cast("list[Any]", found)]
        return found


class _Number:
    def __init__(self, value: int) -> None:
        self.value = value


def _rebuilt(shaped: Any, wrapped: list[HostArray]) -> Any:
    if isinstance(shaped, _Number):
        return wrapped[shaped.value]
    if isinstance(shaped, list):
        return [_rebuilt(item, wrapped) for item in cast("list[Any]", shaped)]
    return shaped
