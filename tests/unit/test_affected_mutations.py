"""The mutations are well formed, and the harness counts what it should."""

from __future__ import annotations

import json
from collections import Counter

from tests.affected_mutations.behaviours import find_changed, load_behaviours
from tests.affected_mutations.copies import Workplace
from tests.affected_mutations.measurement import Measurement, Selection, Truth
from tests.affected_mutations.mutation import Mutation, Replace
from tests.affected_mutations.mutations import ALL
from tests.affected_mutations.report import render_missed, render_page
from tests.affected_mutations.sample import OFFSETS, take_from_each_kind, take_sample


def test_there_are_enough_mutations_and_kinds():
    assert len(ALL) >= 200
    assert len({mutation.kind for mutation in ALL}) >= 40


def test_names_are_unique():
    names = Counter((mutation.kind, mutation.name) for mutation in ALL)
    assert [name for name, count in names.items() if count > 1] == []


def test_each_text_to_replace_occurs_once_in_the_project(tmp_path):
    place = Workplace(tmp_path)
    place.create_project()
    for mutation in ALL:
        for edit in mutation.edits:
            if isinstance(edit, Replace):
                outside = edit.path.startswith("@")
                file = (place.outside if outside else place.project) / edit.path.removeprefix("@")
                assert file.read_text("utf-8").count(edit.old) == 1, mutation


def test_a_copy_contains_the_commit_of_a_mutation(tmp_path):
    place = Workplace(tmp_path)
    place.create_project()
    mutation = Mutation("reply", "code", (Replace("scripts/bonus.py", "11", "12"),))
    copy = place.create_copy(mutation, "one")
    assert "BONUS = 12" in (copy / "scripts/bonus.py").read_text("utf-8")
    assert "BONUS = 11" in (place.project / "scripts/bonus.py").read_text("utf-8")


def test_three_samples_contain_all_kinds():
    samples = [take_sample(ALL, 40, offset) for offset in range(OFFSETS)]
    assert [len(sample) for sample in samples] == [40, 40, 40]
    sampled = {mutation.kind for sample in samples for mutation in sample}
    assert sampled == {mutation.kind for mutation in ALL}


def test_some_mutations_of_each_kind():
    taken = take_from_each_kind(ALL, 3)
    assert len(taken) >= 200
    kinds = Counter(mutation.kind for mutation in ALL)
    assert Counter(mutation.kind for mutation in taken) == {k: min(3, n) for k, n in kinds.items()}


def write_episodes(folder, *episodes):
    file = folder / "episodes/main.jsonl"
    file.parent.mkdir(parents=True)
    lines = [json.dumps({"event": "ended", "episode": episode}) for episode in episodes]
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return load_behaviours(folder)


def episode(scenario, content="yes", latency=1.0, outcome="passed"):
    turn = {"role": "assistant", "content": content, "latency_ms": latency}
    return {"scenario_id": scenario, "outcome": outcome, "trajectory": {"turns": [turn]}}


def test_a_scenario_is_changed_if_it_answers_otherwise_fails_is_new_or_does_not_run(tmp_path):
    names = ("same", "slower", "other", "failed", "absent")
    base = write_episodes(tmp_path / "base", *map(episode, names))
    run = write_episodes(
        tmp_path / "run",
        episode("same"),
        episode("slower", latency=9.0),
        episode("other", "no"),
        episode("failed", outcome="failed"),
        episode("new"),
    )
    assert find_changed(base, run) == {"other", "failed", "absent", "new"}
    assert find_changed(base, base, run) == {"other", "failed", "absent", "new"}


def measure(*, changed, selected, scope="partial", **mutation):
    truth = Truth(frozenset(changed), frozenset("abcd"))
    answer = Selection(frozenset(selected), scope)
    return Measurement(Mutation("name", "kind", **mutation), truth, answer)


def test_a_changed_scenario_that_is_not_selected_is_missed():
    assert measure(changed="ab", selected="bc").missed == {"a"}
    assert measure(changed="ab", selected="bc").needless == {"c"}
    assert not measure(changed="ab", selected="b", removes=frozenset("a")).missed


def test_a_blind_spot_is_shown_apart():
    item = measure(changed="ab", selected="b", blind_spot="secret")
    assert not item.missed
    assert "- kind, name: a (secret)" in render_page([item], 1, "3.13.0")


def test_a_full_run_and_a_refusal_miss_nothing():
    assert not measure(changed="ab", selected="", scope="full").missed
    assert not measure(changed="ab", selected="", scope="refused").missed


def test_the_page_counts_by_kind_and_hubs_apart():
    measured = [
        measure(changed="ab", selected="bc"),
        measure(changed="a", selected="abcd", hub=True),
    ]
    page = render_page(measured, 5, "3.13.0")
    assert "2 of 5 mutations, of 1 kinds" in page
    assert "| of hubs | 1 | 1 | 0 | 3 | 100 % |" in page
    assert "| of other files | 1 | 2 | 1 | 1 | 50 % |" in page
    assert "| kind | 2 | 3 | 1 | 1 | 50 % | 3 (100 %) |" in page
    assert render_missed(measured) == ["- kind, name: a"]
