"""Import of an evaluation: its asserts are wrapped, then rewritten by pytest."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.util
import os
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.evaluation.assert_recorder import AssertRecorder
from ci_agent_eval.pytest_plugin.evaluation.assert_transform import RECORDER, record_asserts
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import (
    is_evaluation_file,
    matches_any_pattern,
)
from ci_agent_eval.pytest_plugin.evaluation.passed_asserts import CountingRewriter, build_source
from ci_agent_eval.pytest_plugin.evaluation.source_text import SourceText


class EvaluationFinder(importlib.abc.MetaPathFinder):
    """Finds only modules that were collected as evaluations."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._repo = RepositoryPaths.find(config.rootpath, os.environ)
        self._files: set[str] = set()
        self._names: set[str] = set()
        self._dotted: dict[tuple[str, str], Path] = {}
        self._is_for_all = False

    def add_file(self, path: Path) -> None:
        """Load this file as an evaluation whenever it is imported."""
        self._files.add(os.path.realpath(path))
        self._names.add(path.stem)
        if "." in path.stem:
            # No import statement can name such a file; pytest's importlib mode uses this name.
            name = path.stem.replace(".", "_")
            self._names.add(name)
            self._dotted[str(path.parent), name] = path

    def add_all_files(self) -> None:
        """Load every evaluation of the repository as one whenever it is imported."""
        self._is_for_all = True

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the module's spec if it is an evaluation."""
        name = fullname.rpartition(".")[2]
        if name not in self._names and not self._may_be_evaluation(name):
            return None
        origin = self._find_origin(fullname, path, target)
        if origin is None or not self._is_evaluation(origin):
            return None
        loader = EvaluationLoader(fullname, str(origin), self._config, self._repo.relative(origin))
        return importlib.util.spec_from_file_location(fullname, origin, loader=loader)

    def _find_origin(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None
    ) -> Path | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return self._dotted.get(((path or [""])[0], fullname))
        return Path(spec.origin)

    def _may_be_evaluation(self, name: str) -> bool:
        """Return whether a module's name could be an evaluation's."""
        if not self._is_for_all:
            return False
        patterns = [Path(pattern).name for pattern in self._config.getini("eval_files")]
        return matches_any_pattern(Path(f"{name}.py"), patterns)

    def _is_evaluation(self, path: Path) -> bool:
        if os.path.realpath(path) in self._files:
            return True
        is_in_repository = self._is_for_all and self._repo.relative(path) is not None
        return is_in_repository and is_evaluation_file(path, self._config)


class EvaluationLoader(SourceFileLoader):
    """Loads one evaluation, always from its source: no bytecode cache is read or written.

    With `--eval-strict` its asserts are only rewritten as pytest does.
    """

    def __init__(self, name: str, path: str, config: pytest.Config, file: str | None) -> None:
        super().__init__(name, path)
        self._config = config
        self._file = file

    def get_code(self, fullname: str) -> types.CodeType:
        """Compile the source as an evaluation."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    # The path is always a str here; importlib's stubs leave it open.
    def source_to_code(self, data: Any, path: Any, **_: Any) -> types.CodeType:  # type: ignore[override]
        """Compile source whose asserts are recorded; raises SyntaxError like Python."""
        tree = ast.parse(data, filename=path)
        is_rewritten = self._config.getoption("assertmode") == "rewrite"
        if self._config.option.eval_strict:
            if is_rewritten:
                CountingRewriter(path, self._config, data).run(tree)
            strict: types.CodeType = compile(tree, path, "exec", dont_inherit=True)
            return strict
        text = importlib.util.decode_source(data)
        record_asserts(tree, text)
        if is_rewritten:
            # Statements that share a line confuse pytest's own search for the texts of asserts.
            asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
            shown = SourceText(text)
            source = build_source({node.lineno: shown.get_text(node.test) for node in asserts})
            CountingRewriter(path, self._config, source).run(tree)
        # Keep asserts that pytest does not rewrite, even if the interpreter optimizes: an
        # evaluation without asserts would measure nothing.
        code: types.CodeType = compile(tree, path, "exec", dont_inherit=True, optimize=0)
        return code

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the module, with the recorder of its asserts as a global."""
        vars(module)[RECORDER] = AssertRecorder(self._file)
        super().exec_module(module)
