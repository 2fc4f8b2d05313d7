"""What every test may ask for: golden files, written anew with `--update-golden`."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.garbage import collect_garbage, find_open_sockets
from tests.installed_packages import Packages
from tests.tables import read_sections

pytest_plugins = ["pytester"]

# Same examples in every run and no time limit: a slow machine passes what a fast one passes.
# Tests that need more or fewer examples than others multiply `settings.default.max_examples`.
for _profile, _examples in (("fast", 20), ("full", 100)):
    settings.register_profile(
        _profile,
        max_examples=_examples,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

GOLDEN = Path(__file__).parent / "golden"


# A shell that starts the tests in the background, and nohup, have these signals ignored, and every
# process started from here would inherit that: what the tests send would be lost.
for _ended_by, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_ended_by) is signal.SIG_IGN:
        signal.signal(_ended_by, _handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        # `make golden` runs pytest through xdist, whose workers inherit the environment.
        default=os.environ.get("UPDATE_GOLDEN") == "1",
        help="write the golden files anew instead of comparing; read the diff before you commit it",
    )


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Start half again as many workers as processors: a fifth of the time, tests only wait."""
    count = yield
    return count if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else count * 3 // 2


def pytest_collection_finish() -> None:
    """Spare the collector the items: they live to the end, and each collection would visit them."""
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def own_garbage() -> Iterator[None]:
    """Free what a module's tests left, before another module's tests run in this process."""
    yield
    collect_garbage()


@pytest.fixture(autouse=True)
def own_connections() -> Iterator[None]:
    """Close the connections that a test's clients left open, before the next test.

    First and so last of a test's fixtures: `pytester` keeps the objects of its runs to its end.
    """
    before = find_open_sockets()
    yield
    if find_open_sockets() - before:
        collect_garbage()


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    """A folder for packages with extensions, at the start of `sys.path`."""
    folder = tmp_path / "site"
    folder.mkdir()
    return Packages(folder, monkeypatch)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str | Mapping[str, str]], None]:
    """Hold a whole output, or one for each heading, against a file under tests/golden."""
    update = request.config.getoption("--update-golden")

    def hold(name: str, output: str | Mapping[str, str]) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((output if isinstance(output, str) else join(output)).encode())
        assert path.is_file(), f"no golden file {name}; `make golden` writes it"
        if isinstance(output, str):
            assert output == path.read_bytes().decode()
            return
        stored = read_sections(path)
        wrong = [case for case in output if output[case] != stored.get(case)]
        for case in wrong[:1]:
            assert output[case] == stored.get(case), f"{name} differs in {', '.join(wrong)}"
        assert list(stored) == list(output)

    def join(outputs: Mapping[str, str]) -> str:
        return "".join(f"===== {case} =====\n{text}\n" for case, text in outputs.items())

    return hold
