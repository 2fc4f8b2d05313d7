"""Replacing methods of client libraries, now or when they are imported, and restoring them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Method = Callable[..., Any]


@dataclass(frozen=True)
class Patch:
    """A method to replace."""

    owner: type
    name: str
    wrap: Callable[[Method], Method]
    """Returns the replacement of the method that it is given."""

    def apply(self) -> Callable[[], None]:
        """Replace the method; return a function that restores it."""
        original = vars(self.owner)[self.name]
        # Other tools' wrappers (wrapt, OpenTelemetry) find the instance only as descriptors.
        method = getattr(self.owner, self.name)
        current = self.wrap(method)

        @wraps(original)
        def replacement(*args: Any, **options: Any) -> Any:
            return current(*args, **options)

        setattr(self.owner, self.name, replacement)

        def restore() -> None:
            nonlocal current
            # Another tool may have wrapped ours; its wrapper then keeps ours, which only passes on.
            current = method
            if vars(self.owner)[self.name] is replacement:
                setattr(self.owner, self.name, original)

        return restore


class LibraryPatches(MetaPathFinder):
    """The patches of several libraries; of a library not yet imported, once it is."""

    def __init__(self, libraries: dict[str, Callable[[ModuleType], Sequence[Patch]]]) -> None:
        self._libraries = libraries
        self._restore: list[Callable[[], None]] = []

    def install(self) -> None:
        """Patch the libraries that are imported, and await the others."""
        sys.meta_path.insert(0, self)
        for name in self._libraries:
            if (module := sys.modules.get(name)) is not None:
                self.patch(module)

    def uninstall(self) -> None:
        """Restore all methods."""
        sys.meta_path.remove(self)
        while self._restore:
            self._restore.pop()()

    def patch(self, library: ModuleType) -> None:
        """Apply the patches of a library, or warn that its version is not supported."""
        try:
            patches = self._libraries[library.__name__](library)
            self._restore += [patch.apply() for patch in patches]
        except (AttributeError, KeyError) as error:
            version = getattr(library, "__version__", "unknown")
            warnings.warn(
                f"Model calls through {library.__name__} {version} are not seen: it has no {error}."
                " Use a version that ci-agent-eval supports.",
                RuntimeWarning,
                stacklevel=2,
            )

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the other finders find a library, and patch it after its import."""
        if fullname not in self._libraries:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                self._patch_after(spec.loader)
                return spec
        return None

    def _patch_after(self, loader: Any) -> None:
        """Let a loader patch the library that it loads; it has no trace of that afterwards."""
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            if self in sys.meta_path:
                self.patch(module)

        loader.exec_module = exec_module
