from __future__ import annotations

import pytest

from ci_agent_eval.checks import FinalState, StateUnchanged
from ci_agent_eval.contract import state as module
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.state import WatchedState, compare_states
from ci_agent_eval.errors import InputError
from tests.builders import episode
from tests.tables import each_row

BEFORE = {
    "orders/1": {"item": "kettle", "status": "paid"},
    "orders/2": {"item": "mug", "status": "paid"},
}
REFUNDED = {
    "orders/1": {"item": "kettle", "status": "refunded"},
    "orders/2": {"item": "mug", "status": "paid"},
    "refunds/7": {"order_id": 1, "usd": 39},
}


def shop(after=REFUNDED, before=BEFORE, name="shop", ignored=()):
    return compare_states(name, "database", before, after, ignored)


def judge(check, *states):
    (found,) = check.assertions(episode(states=states))
    return found.passed, found.reason


EXPECTED = {"orders/1": {"status": "refunded"}, "refunds/*": {"order_id": 1, "usd": 39.0}}


def test_the_expected_changes_and_no_others_pass():
    assert judge(FinalState(EXPECTED), shop()) == (True, "2 changes, as expected")


@each_row(
    ("changed", "reason"),
    [
        ({"orders/1": BEFORE["orders/1"]}, 'orders/1.status is "paid", expected "refunded"'),
        ({"orders/1": None}, 'orders/1 is missing, expected {"status": "refunded"}'),
        ({"refunds/7": None}, "refunds/* stands for one changed entry, but there are 0"),
        (
            {"refunds/8": {}},
            "refunds/* stands for one changed entry, but there are 2 (the first of 3 differences)",
        ),
        ({"refunds/7": {"order_id": 1}}, "refunds/7.usd is none, expected 39.0"),
        (
            {"orders/2": {"item": "mug", "status": "lost"}},
            'orders/2.status changed from "paid" to "lost", which is not expected',
        ),
        ({"orders/2": None}, "orders/2 was removed, which is not expected"),
        (
            {"orders/1": {"item": "pot", "status": "refunded"}},
            'orders/1.item changed from "kettle" to "pot", which is not expected',
        ),
        ({"orders/3": {"a": 1}}, 'orders/3 was added: {"a": 1}, which is not expected'),
    ],
)
def test_the_reason_names_the_first_difference(changed, reason):
    after = {name: fields for name, fields in (REFUNDED | changed).items() if fields is not None}
    assert judge(FinalState(EXPECTED), shop(after)) == (False, reason)


def test_an_entry_may_be_expected_to_be_as_it_was_or_gone():
    assert judge(FinalState({"orders/2": {"status": "paid"}, "orders/9": None}), shop(BEFORE))[0]
    passed, reason = judge(FinalState({"orders/2": None}), shop(BEFORE))
    assert (passed, reason.partition(":")[0]) == (False, "orders/2 exists, expected none")


def test_other_changes_can_be_allowed():
    check = FinalState({"orders/1": {"item": "kettle"}}, others=True)
    assert judge(check, shop())[0]
    assert not judge(FinalState({"orders/1": {"item": "pot"}}, others=True), shop())[0]


def test_a_plain_value_is_that_of_the_only_field():
    files = compare_states("notes", "folder", {}, {"a.txt": {"content": "hi"}})
    assert judge(FinalState({"a.txt": "hi"}), files)[0]
    assert judge(FinalState({"a.txt": "no"}), files)[1] == 'a.txt.content is "hi", expected "no"'


def test_a_reference_must_be_equal_in_every_entry():
    tables = {"orders": {1: {"item": "kettle", "status": "refunded"}, 2: BEFORE["orders/2"]}}
    tables["refunds"] = {7: {"order_id": 1, "usd": 39}}
    assert judge(FinalState(lambda: tables), shop())[0]
    del tables["refunds"]
    tables["orders"][2] = {"item": "mug", "status": "lost"}
    assert judge(FinalState(lambda: tables), shop()) == (
        False,
        'orders/2.status is "paid", expected "lost" (the first of 2 differences)',
    )
    tables["orders"][2] = {"item": "mug", "status": "paid", "extra": 1}
    tables["refunds"] = {7: {"order_id": 1}}
    assert judge(FinalState(lambda: tables), shop()) == (
        False,
        "orders/2.extra is none, expected 1 (the first of 2 differences)",
    )
    del tables["orders"][2]["extra"]
    assert judge(FinalState(lambda: tables), shop())[1] == "refunds/7.usd is 39, expected none"


def test_the_reference_ignores_what_the_state_ignores():
    rows = {"orders": {1: {"status": "refunded", "at": 2}}, "log": {1: {"text": "x"}}}
    state = shop({"orders/1": {"status": "refunded"}}, ignored=("log/*", "*.at"))
    assert judge(FinalState(lambda: rows), state)[0]


def test_unchanged_states():
    assert judge(StateUnchanged(), shop(BEFORE)) == (True, "nothing changed")
    passed, reason = judge(StateUnchanged(), shop(), shop(BEFORE, name="other"))
    assert not passed
    assert reason == (
        'orders/1.status changed from "paid" to "refunded", '
        'refunds/7 was added: {"order_id": 1, "usd": 39}'
    )
    assert judge(StateUnchanged("users/*"), shop())[0]
    assert not judge(StateUnchanged(["users/*", "refunds/*"]), shop())[0]
    assert judge(StateUnchanged(state="other"), shop(), shop(BEFORE, name="other"))[0]


def test_changes_that_were_not_recorded_never_pass(monkeypatch):
    monkeypatch.setattr(module, "MAX_RECORDED", 0)
    assert judge(StateUnchanged("users/*"), shop()) == (False, "2 larger changes of shop")
    assert not judge(FinalState({}), shop())[0]


@each_row("check", [FinalState({}), StateUnchanged()])
def test_an_episode_without_a_state_is_an_error(check):
    with pytest.raises(InputError, match=r"^the episode watches nothing; call episode.watch"):
        judge(check)
    unread = WatchedState(name="shop", kind="database", error="the state of 'shop' is gone")
    with pytest.raises(InputError, match=r"^the state of 'shop' is gone$"):
        judge(check, unread)


def test_several_states_need_a_name():
    states = shop(), shop(BEFORE, name="other")
    with pytest.raises(InputError, match=r"watches shop, other; name one with state="):
        judge(FinalState({}), *states)
    with pytest.raises(InputError, match=r"watches shop, other, not 'none'"):
        judge(FinalState({}, state="none"), *states)
    assert judge(FinalState({}, state="other"), *states)[0]


def test_a_stored_episode_is_judged_by_its_changes_only():
    stored = Episode.model_validate_json(canonical_json(episode(states=[shop()])))
    (found,) = StateUnchanged().assertions(stored)
    assert not found.passed
    with pytest.raises(InputError, match=r"has only the changes of 'shop'"):
        FinalState({}).assertions(stored)
