"""The errors this program raises on purpose: the problem, then the remedy."""

from __future__ import annotations

from types import MappingProxyType

# The hook imports this module; see `ci_agent_eval/__init__.py`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class AgentEvalError(Exception):
    """Base of every deliberate error; `exit_code` is the exit code of the process."""

    exit_code = 3


class InputError(AgentEvalError):
    """Wrong usage, configuration or input."""

    exit_code = 2


class PublishError(AgentEvalError):
    """A requested publication that failed."""

    exit_code = 3


def missing_package_error(user: str, package: str, extra: str) -> InputError:
    """Return the error that `user` needs a package of the extra `extra`."""
    command = build_install_command(extra)
    return InputError(f"{user} needs {package}, which is not installed; run: {command}")


def build_install_command(extra: str) -> str:
    """Return the command that installs an extra, from where this package was installed.

    pip records that, as PEP 610 describes; nobody may own our name on an index.
    """
    import json  # noqa: PLC0415 - only for the error
    import re  # noqa: PLC0415
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415

    try:
        origin = json.loads(distribution("ci-agent-eval").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        origin = {}
    url = re.sub(r"//[^/@]*@", "//", origin.get("url", ""))  # without a password
    if vcs := origin.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs.get('requested_revision') or vcs['commit_id']}"
    return f"pip install 'ci-agent-eval[{extra}]{f' @ {url}' if url else ''}'"


def create_lazy_getattr(
    package: str,
    modules: Mapping[str, str],
    extra: str | None = None,
    extras: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[str], Any]:
    """Return a package's `__getattr__` that imports a name's module on first use.

    `modules` maps each name to its module below `ci_agent_eval`. With `extra`, a missing library
    becomes an InputError that names this extra, or that of the name in `extras`.
    """

    def export(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - as above

        try:
            return getattr(import_module(f"ci_agent_eval.{modules[name]}"), name)
        except ModuleNotFoundError as error:
            needed = extras.get(name, extra)
            if needed is None:
                raise
            raise missing_package_error(name, str(error.name), needed) from error

    return export
