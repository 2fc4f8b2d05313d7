"""pytest's rootdir, determined without the values of this plugin's options.

pytest determines it before it knows the options of plugins, and takes a value after a space for a
path of tests (https://github.com/pytest-dev/pytest/issues/1435). With `--episode-report-dir DIR`
the node ids would depend on the location of DIR, and on whether an earlier run, or the main process
of workers that start now, has created it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from _pytest.config.findpaths import determine_setup

_GROUPS = ("episodes", "experiments")


def set_rootdir(config: pytest.Config, parser: pytest.Parser, args: Sequence[str]) -> None:
    """Set the rootdir as if our options had no values, here and in xdist's workers.

    Raises pytest.UsageError if pytest has read another configuration file because of a value.
    """
    options = _list_value_options(parser)
    given = config.invocation_params
    config.invocation_params = pytest.Config.InvocationParams(
        args=tuple(_join_values(given.args, options)), plugins=given.plugins, dir=given.dir
    )
    if (option := next((arg for arg in args if arg in options), None)) is None:
        return
    arguments = config.known_args_namespace
    rootdir, inipath = _determine_rootdir(config, arguments)
    if inipath != config.inipath:
        raise pytest.UsageError(
            f"{option}: pytest took the value after the space for a path of tests, and so read "
            f"{config.inipath or 'no configuration file'} in place of {inipath or 'none'}; "
            f"write {option}=VALUE"
        )
    if arguments.confcutdir == str(config.rootpath):
        arguments.confcutdir = str(rootdir)
    config._rootpath = rootdir  # noqa: SLF001 - see the list of private interfaces


def _list_value_options(parser: pytest.Parser) -> set[str]:
    """Return the names of our options that take a value."""
    return {
        name
        for group in _GROUPS
        for option in parser.getgroup(group).options
        if option.attrs().get("metavar") is not None
        for name in option.names()
    }


def _join_values(args: Sequence[Any], options: set[str]) -> Iterator[str]:
    """Yield the arguments, with our options as `--option=value`."""
    rest = iter(map(str, args))
    for arg in rest:
        value = next(rest, None) if arg in options else None
        yield arg if value is None else f"{arg}={value}"


def _determine_rootdir(config: pytest.Config, namespace: Any) -> tuple[Any, Any]:
    """Return the rootdir and the configuration file for the paths of tests alone."""
    arguments = {
        "inifile": namespace.inifilename,
        "override_ini": namespace.override_ini,
        "args": namespace.file_or_dir,
        "rootdir_cmd_arg": namespace.rootdir or None,
        "invocation_dir": config.invocation_params.dir,
    }
    accepted = inspect.signature(determine_setup).parameters
    found: Any = determine_setup(**{n: v for n, v in arguments.items() if n in accepted})
    return found[0], found[1]
