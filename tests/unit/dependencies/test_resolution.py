"""A run's dependencies are built from what its processes have seen."""

from __future__ import annotations

from ci_agent_eval.dependencies.recording.part import (
    ProcessPart,
    ScenarioPart,
    dump_part,
    parse_part,
)
from ci_agent_eval.dependencies.recording.resolution import FileStates, resolve_dependencies

FILES = {
    "rates.py": b"import pricing.tax\ndef get_rate(): return pricing.tax.RATE\n",
    "test_rates.py": b"import rates\ndef test_rate(): rates.get_rate()\n",
    "test_hello.py": b"def test_hello(): pass\n",
}
MODULES = tuple((path.removesuffix(".py"), "", path) for path in FILES)
SCENARIOS = {
    name: ScenarioPart(
        functions=frozenset({(f"test_{name}.py", f"test_{name}")}),
        test_files=frozenset({f"test_{name}.py"}),
    )
    for name in ("rates", "hello")
}


def resolve(*outside):
    part = ProcessPart("function", True, MODULES, outside, scenarios=SCENARIOS)
    states = FileStates(FILES.get, FILES.__contains__, lambda path: False)
    return resolve_dependencies([parse_part(dump_part(part))], states, frozenset())


def causes(reached):
    return {one.detail for one in reached.unknown}


def test_a_module_from_elsewhere_counts_for_those_that_import_its_package():
    found = resolve(("pricing", "/opt/pricing/__init__.py"), ("pricing.tax", "/opt/pricing/tax.py"))
    assert causes(found.shared) == set()
    assert causes(found.scenarios["hello"]) == set()
    assert causes(found.scenarios["rates"]) == {"/opt/pricing/__init__.py", "/opt/pricing/tax.py"}


def test_a_module_from_elsewhere_that_no_file_names_counts_for_all():
    found = resolve(("plugin", "/opt/plugin.py"))
    assert causes(found.shared) == {"/opt/plugin.py"}
