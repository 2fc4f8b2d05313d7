"""The journal that a process writes of its episodes, and the redaction of all that it writes."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import pytest

from ci_agent_eval.contract.base import FrozenModel
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.results import JournalLine
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.redaction import Redactor, make_distinct_names, redact_value, remove_secret_pairs
from ci_agent_eval.storage.run_folder import ReportFolder

Model = TypeVar("Model", bound=FrozenModel)


class EpisodeFiles:
    """The files of one process; without a report directory nothing is written."""

    def __init__(
        self,
        redactor: Redactor,
        folder: ReportFolder | None,
        worker: str,
        root: Path,
    ) -> None:
        self._redactor = redactor
        self._root = f"{root}{os.sep}"
        self._redacted: tuple[Redactor, Episode, Episode] | None = None
        self._folder = folder
        self._journal = None if folder is None else folder.journal(worker)
        self.has_own_secrets = False
        """Whether this process has secrets that its parent process does not know."""

    @classmethod
    def for_process(cls, config: pytest.Config, root: Path) -> EpisodeFiles:
        """Open the files of the process that `config` belongs to; `root` is the repository's."""
        directory, worker = options.get_report_dir(config), options.get_worker_id(config)
        folder = None if directory is None else ReportFolder(directory)
        return cls(Redactor.from_environ(os.environ), folder, worker, root)

    def add_secrets(self, secrets: frozenset[str]) -> None:
        """Redact these values, too, from all later output."""
        self._redactor = self._redactor.with_secrets(secrets)
        self.has_own_secrets = True

    def redact(self, text: str) -> str:
        """Return a text without secrets."""
        return self._redactor.text(text)

    def redact_model(self, model: Model) -> Model:
        """Return a model of the contract without secrets."""
        return redact_model(model, self._redactor)

    def redact_episode(self, episode: Episode) -> Episode:
        """Return the redacted episode, cached because the journal and two reports use it."""
        cached = self._redacted
        if cached is None or cached[0] is not self._redactor or cached[1] is not episode:
            redacted = redact_model(self._shorten_paths(episode), self._redactor)
            cached = (self._redactor, episode, redacted)
            self._redacted = cached
        return cached[2]

    def _shorten_paths(self, episode: Episode) -> Episode:
        """Return the episode with reasons that name files from the repository's root."""
        found: tuple[Episode | Assertion, ...] = (episode, *episode.assertions)
        if not any(self._root in (one.reason or "") for one in found):
            return episode
        shortened = [
            one.model_copy(update={"reason": one.reason and one.reason.replace(self._root, "")})
            for one in episode.assertions
        ]
        reason = episode.reason and episode.reason.replace(self._root, "")
        return episode.model_copy(update={"reason": reason, "assertions": tuple(shortened)})

    def write_selected(self, **fields: object) -> None:
        """Write how many episodes are selected, and which are not."""
        if self._folder is not None:
            self._folder.note_selected(fields)

    def write(
        self, event: Literal["started", "ended"], episode: Episode, initial: Episode | None = None
    ) -> None:
        """Write a line of the journal; `initial` is the episode as it was when it started."""
        if self._journal is None:
            return
        is_renamed = initial is not None and initial.scenario_id != episode.scenario_id
        started_as = self.redact(initial.scenario_id) if initial and is_renamed else None
        line = JournalLine(event=event, episode=self.redact_episode(episode), started_as=started_as)
        self._journal.write(line)


def redact_model(model: Model, redactor: Redactor) -> Model:
    """Return the value with every nested text redacted, including keys of mappings.

    A value without a secret is returned unchanged: every episode is checked, few hold a secret.
    """
    updates: dict[str, Any] = {}
    for name in _list_text_fields(type(model)):
        value = getattr(model, name)
        clean = _redact_value(value, redactor)
        if clean is not value:
            updates[name] = clean
    copied = model.model_copy(update=updates) if updates else model
    return _redact_extra_fields(copied, redactor) if model.model_extra else copied


def _redact_extra_fields(model: Model, redactor: Redactor) -> Model:
    """Return the value with the fields redacted that the contract does not define."""
    extra = model.model_extra or {}
    clean = _redact_mapping(extra, redactor)
    if clean is extra:
        return model
    copied = model.model_copy(update=clean)
    for key in extra.keys() - clean.keys():
        (copied.model_extra or {}).pop(key)  # `model_copy` adds keys but removes none
    return copied


def _redact_value(value: Any, redactor: Redactor) -> Any:
    """Return the redacted value; the same object if it has no secret."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        clean = remove_secret_pairs(redactor.text(value))
        return value if clean == value else clean
    if isinstance(value, FrozenModel):
        return redact_model(value, redactor)
    if isinstance(value, tuple | list):
        items = [_redact_value(item, redactor) for item in value]
        if all(item is own for item, own in zip(items, value, strict=True)):
            return value
        return tuple(items) if isinstance(value, tuple) else items
    return _redact_mapping(value, redactor) if isinstance(value, dict) else value


def _redact_mapping(value: dict[Any, Any], redactor: Redactor) -> dict[Any, Any]:
    names = make_distinct_names(value, redactor.text) if value else {}
    items = {k: _redact_value(redact_value(k, item), redactor) for k, item in value.items()}
    if all(names[key] == key and item is value[key] for key, item in items.items()):
        return value
    return {names[key]: item for key, item in items.items()}


@cache
def _list_text_fields(kind: type[FrozenModel]) -> tuple[str, ...]:
    """Return the names of the fields that may hold free text."""
    fields = kind.model_fields.items()
    return tuple(name for name, field in fields if not _is_closed(field.annotation))


def _is_closed(annotation: Any) -> bool:
    """Return whether a field holds figures or one of a fixed set of words: `failed`, `p95`."""
    if get_origin(annotation) is Literal or annotation in _FIGURES:
        return True
    parts = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _is_closed(parts[0])
    return bool(parts) and all(part is type(None) or _is_closed(part) for part in parts)


_FIGURES = (bool, int, float)
