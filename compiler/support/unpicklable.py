"""`Unpicklable`: objects bound to this process, such as loaded machine code, that refuse pickle and copy."""

from __future__ import annotations

from typing import ClassVar, NoReturn


class Unpicklable:
    """Base of objects that refuse `pickle` and `copy` by a TypeError with the sentence `_refusal`."""

    _refusal: ClassVar[str]
    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(self._refusal)
