"""Run a script without the functions and modules of Python that Windows lacks.

    python without_posix.py SCRIPT [ARGUMENT...]

Libraries are imported first: they choose other functions on Windows.
"""

import asyncio
import concurrent.futures.process
import importlib
import multiprocessing
import os
import runpy
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import uuid
import zipfile

_LIBRARIES = (
    "click",
    "github",
    "jinja2",
    "junitparser",
    "markdown_it",
    "numpy",
    "pydantic",
    "requests",
)
_OF_OS = (
    "O_CLOEXEC O_NONBLOCK O_NOFOLLOW O_DIRECTORY fchmod fork getuid geteuid killpg mkfifo setsid"
)
_OF_SIGNAL = "SIGHUP SIGALRM SIGKILL ITIMER_REAL setitimer alarm"
_MODULES = "fcntl grp pwd resource termios"
_KEPT = (asyncio, concurrent, multiprocessing, shutil, ssl, subprocess, tempfile, uuid, zipfile)

if __name__ == "__main__":
    sys.path.insert(0, os.environ["RUNNER_TEMP"] + "/agent-eval-report-action/packages")
    for name in _LIBRARIES:
        importlib.import_module(name)
    for module, names in ((os, _OF_OS), (signal, _OF_SIGNAL)):
        for name in names.split():
            delattr(module, name)
    sys.modules.update(dict.fromkeys(_MODULES.split()))
    sys.argv[:] = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
