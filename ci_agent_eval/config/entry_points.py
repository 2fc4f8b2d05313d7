"""Extensions of installed packages: entry points, found by group and name.

Packages are searched only for a name that this package does not define itself.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any, NamedTuple

from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.errors import InputError

CHECKS = "ci_agent_eval.checks"
IMPORTERS = "ci_agent_eval.importers"
FORMATS = "ci_agent_eval.formats"

EXTENSION_ERRORS = (Exception, SystemExit)
"""Errors of a package's code; `sys.exit(0)` in it must not end the gate with success."""


class Extension(NamedTuple):
    """An object that an installed package registers."""

    title: str
    """Group, name and package, for messages."""
    value: Any

    def build_error(self, problem: str, error: BaseException | None = None) -> InputError:
        """Return the error that the extension failed; `problem` is the rest of a sentence."""
        cause = "" if error is None else f" ({describe_error(error)})"
        return InputError(f"{self.title} {problem}{cause}; correct or uninstall the package")

    def create(self) -> Any:
        """Return the object; a class is called without arguments. Raises InputError."""
        if not isinstance(self.value, type):
            return self.value
        try:
            return self.value()
        except EXTENSION_ERRORS as error:
            raise self.build_error("cannot be created", error) from None


def list_extensions(group: str) -> tuple[str, ...]:
    """Return the names in a group, sorted; nothing is imported."""
    return tuple(sorted({point.name for point in metadata.entry_points(group=group)}))


def load_extension(group: str, name: str) -> Extension | None:
    """Import an extension; None if no package has it.

    Raises InputError if several packages have it, or if it cannot be imported.
    """
    points = list(metadata.entry_points(group=group, name=name))
    packages = sorted({_get_package(point) for point in points})
    if len(packages) > 1:
        raise InputError(
            f"{group} {name!r}: the packages {' and '.join(packages)} have this name; "
            "uninstall all but one"
        )
    if not points:
        return None
    extension = Extension(f"{group} {name!r} of the package {packages[0]}", None)
    try:
        return extension._replace(value=points[0].load())
    except EXTENSION_ERRORS as error:
        raise extension.build_error("cannot be imported", error) from None


def _get_package(point: metadata.EntryPoint) -> str:
    return "(unknown)" if point.dist is None else point.dist.name
