"""`Unpicklable`: an object of this process, such as one with loaded machine code, which is not pickled or copied."""

from __future__ import annotations

from typing import ClassVar, NoReturn


class Unpicklable:
    """Base of objects that refuse `pickle` and `copy`, in a sentence that says what to do."""

    _refusal: ClassVar[str]
    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(self._refusal)
