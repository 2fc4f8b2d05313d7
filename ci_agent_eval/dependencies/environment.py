"""The conditions of a process: Python, installed distributions, environment variables."""

from __future__ import annotations

import os
import platform
import site
import sys
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from ci_agent_eval.redaction import find_secrets, is_secret_name

_METADATA_SUFFIXES = frozenset({".dist-info", ".egg-info"})
_MODULES = frozenset({".py", ".pth"})
_HASHED_FILES = ("RECORD", "direct_url.json", "METADATA", "PKG-INFO")
"""Files of a distribution's metadata; `direct_url.json` names the source of an editable one."""

ALWAYS_READ = frozenset({"TZ", "LANG", "LANGUAGE", "SSL_CERT_FILE", "SSL_CERT_DIR"})
"""Variables that the C library and Python read without `os.environ`."""
_PYTEST_VARIABLES = frozenset(
    {"PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"}
)
"""Variables that pytest reads before anything is watched."""
_ALWAYS_READ_PREFIXES = ("LC_", "PYTHON")
_ALWAYS_READ_SUFFIX = "_PROXY"

_IGNORED_VARIABLES = frozenset({"PYTHONPATH", "PYTHON_VERSION", "PYTHONHASHSEED"})
"""PYTHONPATH names temporary folders, and the other two differ without an effect on verdicts."""


def get_python_version() -> str:
    """Return the version of this Python, such as `CPython 3.13.0`."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def get_platform() -> str:
    """Return the operating system and processor, such as `linux-x86_64`."""
    return f"{sys.platform}-{platform.machine()}"


@cache
def hash_distributions() -> Mapping[str, str]:
    """Return the hash of each installed distribution's list of files and source, by its folder.

    Reads the folders of `sys.path` itself: `importlib.metadata` parses all metadata, which takes
    ten times as long.
    """
    found: dict[str, list[str]] = {}
    for entry in dict.fromkeys(sys.path):
        for folder in _list_metadata_folders(Path(entry)):
            found.setdefault(folder.name, []).append(_hash_metadata(folder))
    found["other files"] = [_hash_top_files(Path(folder)) for folder in _list_site_folders()]
    return {name: _hash_texts(hashes) for name, hashes in sorted(found.items())}


def _list_site_folders() -> list[str]:
    """Return the folders of packages, and those of PYTHONPATH outside of the current folder."""
    here, given = Path.cwd(), map(Path, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    outside = [str(one) for one in given if one.is_absolute() and not one.is_relative_to(here)]
    return [*site.getsitepackages(), site.getusersitepackages(), *outside]


def _hash_top_files(folder: Path) -> str:
    """Return a hash of a folder's names, and of its modules that may belong to no distribution."""
    try:
        files = sorted(one for one in folder.iterdir() if one.name != "__pycache__")
    except OSError:
        return ""
    texts = [one.name for one in files]
    return _hash_texts([*texts, *(_hash_file(one) for one in files if one.suffix in _MODULES)])


def _list_metadata_folders(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if one.suffix in _METADATA_SUFFIXES)
    except OSError:
        return []


def _hash_metadata(folder: Path) -> str:
    files = (folder / name for name in _HASHED_FILES) if folder.is_dir() else (folder,)
    return _hash_texts([_hash_file(file) for file in files])


def _hash_file(file: Path) -> str:
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def compute_installation_digest(python: str, platform_: str, found: Mapping[str, str]) -> str:
    """Return a hash of Python, platform and distributions."""
    pairs = (f"{name}={digest}" for name, digest in sorted(found.items()))
    return _hash_texts([python, platform_, *pairs])


def hash_variable(name: str, value: str | None) -> str | None:
    """Return the hash of a variable's value; None if it is unset.

    For a value that is or contains a secret it is `set`: a hash of a short one can be guessed.
    """
    if value is None:
        return None
    if is_secret_name(name) or any(find_secrets(name, value)):
        return "set"
    return _hash_texts([value])


def is_always_read(name: str) -> bool:
    """Return whether a variable counts for every run, although no Python code reads it."""
    if name in _IGNORED_VARIABLES:
        return False
    upper = name.upper()
    return (
        name in ALWAYS_READ | _PYTEST_VARIABLES
        or name.startswith(_ALWAYS_READ_PREFIXES)
        or upper.endswith(_ALWAYS_READ_SUFFIX)
    )


def _hash_texts(texts: list[str]) -> str:
    return sha256("\0".join(texts).encode("utf-8", "surrogateescape")).hexdigest()
