"""Objects that use an open store, and so cannot be copied: not by `copy`, and not by `pickle` into another process."""

from __future__ import annotations

from typing import NoReturn

from recollect.errors import UnsupportedError


class Uncopied:
    """The base of what uses an open store."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Raise UnsupportedError: a copy would use the locks and connections of this one."""
        what = f"{type(self).__name__} cannot be copied or pickled"
        raise UnsupportedError(what, "it uses an open store. Where another one is needed, call recollect.open(path)")
