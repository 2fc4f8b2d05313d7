"""The reports of the golden comments: what a change may do to an agent, with conversations.

Each is a suite of the same support desk. Both sides vary a little from run to run, as real runs do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from ci_agent_eval.analysis.comparison.model import Baseline, BaselineRun, NoBaseline
from ci_agent_eval.analysis.loaded_results import JUnitCase, OutcomeTally, PlainTests
from ci_agent_eval.app.pipeline import find_pairs
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.findings import MissingShards, SourceFile
from ci_agent_eval.gate.report import Report
from ci_agent_eval.results.baselines.runs import SampleCollector
from tests.builders import episode, failed_assertion, finding, loaded, report, tool_call, turn

Call = tuple[str, dict[str, Any]]

RUNS = 6
LABEL = "main@4f2a91c"
NAMES = (
    *("address_change", "cancel_late", "cancel_order", "duplicate_order", "gift_order"),
    *("invoice_fr", "late_order", "lost_parcel", "order_history", "order_status"),
    *("refund_over_limit", "refund_policy", "return_label", "small_talk", "split_order"),
    *("stock", "tone", "voucher", "warranty", "wrong_item"),
)


@dataclass(frozen=True)
class Talk:
    """What an agent does in a scenario, and what that takes."""

    user: str = "Where is my order 1011?"
    calls: tuple[Call, ...] = (("get_order", {"id": 1011}), ("get_shipment", {}))
    answer: str = "It was shipped on Monday and arrives on Thursday."
    cost: float = 0.0041
    latency: float = 1_200
    earlier: tuple[Talk, ...] = ()
    """Exchanges before this one."""
    fails: str | None = None
    """The check that it fails."""
    reason: str | None = "it does not"
    failures: int = 10
    """Of ten iterations, the first ones that fail."""
    place: tuple[str, int] = ("tests/episodes/test_desk.py", 40)
    fields: dict[str, Any] = field(default_factory=dict)


def build(name: str, talk: Talk, run: int, iteration: int) -> Episode:
    """One iteration of a scenario; run 0 is the head."""
    wobble = 1 + 0.002 * ((iteration * 7 + run * 3 + len(name)) % 11 - 5)
    turns = [made for one in (*talk.earlier, talk) for made in _list_turns(one, wobble)]
    fields: dict[str, Any] = {
        "iteration": iteration,
        "min_pass_rate": 0.9,
        "file": talk.place[0],
        "line": talk.place[1],
        "nodeid": f"{talk.place[0]}::test_{name}",
        "trajectory": {"turns": turns},
        **talk.fields,
    }
    if talk.fails is not None and iteration <= talk.failures:
        file, line = talk.place
        failed = failed_assertion(talk.fails, reason=talk.reason, file=file, line=line)
        fields |= {"outcome": "failed", "assertions": [failed]}
    return episode(name, **fields)


def _list_turns(talk: Talk, wobble: float) -> Iterator[dict[str, Any]]:
    calls = [tool_call(name, arguments=arguments) for name, arguments in talk.calls]
    usage = {
        "source": "live",
        "cost_usd": talk.cost * wobble / (1 + bool(calls)),
        "latency_ms": round(talk.latency * wobble, 1),
        "tokens": {"input": 1_200, "output": 237},
    }
    yield {"role": "user", "content": talk.user}
    if calls:
        yield turn("", tool_calls=calls, **usage)
    yield turn(talk.answer, **usage)


def compare(
    before: dict[str, Talk],
    now: dict[str, Talk],
    *,
    iterations: int = 10,
    past: int = 10,
    runs: int = RUNS,
    **fields: Any,
) -> Report:
    """The report of a suite against the runs of its base, with the conversations that show it."""
    base = [_run(before, run, past) for run in range(1, runs + 1)]
    head = _run(now, 0, iterations)
    samples = SampleCollector()
    for one in base[0]:
        samples.keep(one.key, samples.put(one))
    latest = BaselineRun(loaded(*base[0]).episodes, samples=samples.list_samples())
    others = (BaselineRun(loaded(*one).episodes) for one in base[1:])
    found = report(*head, baseline=Baseline(LABEL, (latest, *others)), **fields)
    return add_pairs(found, head, latest)


def add_pairs(found: Report, head: Sequence[Episode], latest: BaselineRun | None) -> Report:
    """Add the pairs, as the whole job does."""
    lines = [canonical_json(one) for one in head]
    samples = latest.samples if latest is not None else ()
    return replace(found, pairs=find_pairs(found, loaded(*head).episodes, lines, samples))


def _run(talks: dict[str, Talk], run: int, iterations: int) -> list[Episode]:
    numbers = range(1, iterations + 1)
    return [build(name, talk, run, number) for name, talk in talks.items() for number in numbers]


def suite(names: Sequence[str] = NAMES, **changed: Talk) -> dict[str, Talk]:
    return {name: changed.get(name, Talk()) for name in names}


def green_cheaper_slower() -> Report:
    twice = (("get_order", {"id": 1011}), *Talk().calls)
    now = {name: Talk(cost=0.0025, latency=1_250) for name in NAMES}
    for name, latency in (("order_status", 3_720.0), ("return_label", 1_830.0), ("stock", 1_400.0)):
        now[name] = Talk(cost=0.0025, latency=latency, calls=twice)
    return compare(suite(), now)


POLICY = Talk(
    user="I bought these shoes 45 days ago. Can I still return them?",
    calls=(("search_policy", {"topic": "returns"}),),
    answer="No. Returns are possible within 30 days only.",
    place=("tests/episodes/test_policy.py", 31),
)
FLIPPED = replace(
    POLICY,
    calls=(),
    answer="Yes, you can return them within 60 days of the purchase.",
    fails="states the 30-day limit",
    reason='"30 days" is not in the answer',
)


def regression_answer() -> Report:
    return compare(suite(refund_policy=POLICY), suite(refund_policy=FLIPPED))


RENAMED = (
    *("address_change", "cancel_order", "duplicate_order", "gift_order", "late_order"),
    *("lost_parcel", "order_history", "order_status", "split_order"),
)
CALLING = (*RENAMED, "stock", "tone", "voucher", "warranty", "wrong_item")


def tool_renamed() -> Report:
    def talk(tool: str, name: str) -> Talk:
        calls = ((tool, {"email": "a@example.com"}), ("get_order", {"id": 1011}))
        checks = name in RENAMED and tool == "find_orders"
        place = ("tests/episodes/test_orders.py", 22)
        fails = "calls search_orders" if checks else None
        return Talk(calls=calls, fails=fails, reason="search_orders was not called", place=place)

    names = (*CALLING, "cancel_late", "invoice_fr", "refund_policy", "small_talk")
    sides = [
        {name: talk(tool, name) if name in CALLING else Talk() for name in names}
        for tool in ("search_orders", "find_orders")
    ]
    return compare(*sides)


def suite_drop() -> Report:
    names = [f"{kind}_{n}" for kind in ("invoice", "order", "refund") for n in range(1, 18)][:50]
    french = Talk(
        user="Bonjour, je n'ai pas reçu ma facture de mars.",
        answer="Je vous l'envoie tout de suite à l'adresse de votre compte.",
        place=("tests/episodes/test_language.py", 9),
        fields={"min_pass_rate": 0.5},
    )
    english = replace(
        french,
        answer="I will send it to the address of your account right away.",
        fails="answers in the user's language",
        reason="the answer is in English",
        failures=2,
    )
    price = replace(french, user="What does it cost to cancel?", answer="It costs $4.")
    fee = replace(price, answer="It costs a fee.", fails="names the fee", failures=2, reason=None)
    fees = {1, 20, 31}
    base = {name: price if at in fees else french for at, name in enumerate(names)}
    now = {
        name: english if at % 3 == 0 else fee if at in fees else french
        for at, name in enumerate(names)
    }
    return compare(base, now, iterations=5, past=5)


def error_storm() -> Report:
    names = NAMES[:15]
    broken = names[:11]
    reason = "ModuleNotFoundError: No module named 'acme_crm'"
    head = [
        episode(
            name,
            iteration=n,
            outcome="error",
            reason=reason,
            nodeid=f"tests/episodes/test_desk.py::test_{name}",
            file="agent/tools.py",
            line=4,
        )
        if name in broken
        else build(name, Talk(), 0, n)
        for name in names
        for n in range(1, 5)
    ]
    base = [loaded(*_run(suite(names), run, 4)).episodes for run in range(1, RUNS + 1)]
    return report(*head, baseline=Baseline(LABEL, tuple(map(BaselineRun, base))))


def over_budget() -> Report:
    account = ("tests/episodes/test_account.py", 44)
    find = ("geocode", {"street": "1 Main St"})
    again = ("geocode", {"street": "1 Main Street"})
    update = ("update_address", {"id": 7})

    def limit(cost: float, calls: int) -> dict[str, Any]:
        costs = {"used": cost, "limit": 0.01}
        return {"budgets": {"cost_usd": costs, "tool_calls": {"used": calls, "limit": 4}}}

    before = suite(
        address_change=Talk(
            user="I moved. Please use my new address.",
            calls=(find, update), cost=0.004, place=account, fields=limit(0.004, 2),
        ),
        gift_order=Talk(cost=0.0061, place=("tests/episodes/test_gift.py", 12), fields=limit(0.0061, 2)),
    )  # fmt: skip
    now = suite(
        address_change=replace(
            before["address_change"],
            calls=(find, again, again, again, again, again, update), cost=0.02, fields=limit(0.02, 7),
        ),
        gift_order=replace(before["gift_order"], cost=0.011, fields=limit(0.011, 2)),
        late_order=Talk(cost=0.0075),
    )  # fmt: skip
    budgets = SuiteBudgets.model_validate({"total_tokens": {"limit": 500_000, "hard": False}})
    return compare(before, now, budgets=budgets)


def first_run() -> Report:
    head = _run(suite(NAMES[:12]), 0, 10)
    reason = "no run of this workflow on main has come to its end yet; the first one becomes the baseline"
    return add_pairs(report(*head, baseline=NoBaseline(reason)), head, None)


def thousand() -> Report:
    """A thousand failures, nearly all for one reason: the agent calls no tool any more."""
    catalog = Talk(
        user="Do you have the blue mug in stock?",
        calls=(("search_catalog", {"query": "blue mug"}), ("get_stock", {"id": 88})),
        answer="Yes, 14 are in stock.",
        place=("tests/episodes/test_catalog.py", 18),
        fields={"min_pass_rate": None},
    )
    broken = replace(
        catalog,
        calls=(),
        answer="I am not able to look that up.",
        cost=0.0009,
        fails="calls a tool before it answers",
    )
    names = [f"catalog_{n}" for n in range(1, 941)]
    before = dict.fromkeys(names, catalog)
    now: dict[str, Talk] = dict.fromkeys(names, broken)
    kinds = (("price", 41, "names the price"), ("cart", 12, "AssertionError"), ("ship", 7, "asks"))
    for kind, number, check in kinds:
        for n in range(1, number + 1):
            reason = f"expected {n + 2} items, got {n}"
            before[f"{kind}_{n}"] = catalog
            now[f"{kind}_{n}"] = replace(catalog, fails=check, reason=reason)
    for n in range(1, 201):
        before[f"talk_{n}"] = now[f"talk_{n}"] = Talk(fields={"min_pass_rate": None})
    return compare(before, now, iterations=1, past=1, runs=2)


def junit_only() -> Report:
    def case(file: str, name: str, message: str, line: int) -> JUnitCase:
        trace = f"AssertionError: {message}\n    at {file}:{line}:18"
        return JUnitCase("", name, "failed", message, trace, file, line)

    cases = (
        case("src/cart.test.ts", "cart › applies the voucher once", "expected 90, received 81", 41),
        case("src/cart.test.ts", "cart › keeps items after login", "Timeout of 5000 ms exceeded", 77),
        case("src/PaymentTest.java", "PaymentTest › refund", "NullPointerException: order is null", 112),
    )  # fmt: skip
    found = report(
        tests=PlainTests(OutcomeTally(79, 3, 0, 2), cases),
        sources=tuple(SourceFile(f"junit-{n}.xml", "junit", 14) for n in range(6)),
        sessions=(),
    )
    return replace(found, title="Checkout tests")


REFUND = Talk(
    user="I want the whole $900 back, today.",
    calls=(("lookup_order", {"id": 7}), ("ask_manager", {}), ("issue_refund", {"amount": 900})),
    answer=(
        "A manager has to agree to this amount. I have asked, you will hear from us within one "
        "working day."
    ),
    earlier=(Talk(user="Hello, my order 7 arrived broken.", answer="I am sorry to hear that."),),
    place=("tests/episodes/test_refunds.py", 48),
)


def three_regressions() -> Report:
    gift = "gift_order_with_two_addresses_and_a_voucher_for_the_second_one"
    names = (*(name for name in NAMES if name != "gift_order"), gift)
    cheap = {name: Talk(cost=0.0025, latency=1_810) for name in names}
    told = (
        "Done: $900 are on their way to your card. You should see the money in three to five days. "
        "Is there anything else that I can help you with? I can also send you a confirmation by "
        "e-mail, change the address of your next order, or show you what is on offer this week. "
        "Just tell me what you would like, and I will take care of it right away."
    )
    now = cheap | {
        "refund_over_limit": replace(
            REFUND,
            calls=(REFUND.calls[0], REFUND.calls[2]),
            answer=told,
            fails="asks a manager before refunds over $500",
            reason="issue_refund was called first",
            failures=9,
        ),
        "refund_policy": replace(FLIPPED, failures=5),
        gift: Talk(
            user="Send the mug to my sister and the lamp to me.",
            calls=(("ship", {"item": "mug", "to": "me"}), ("ship", {"item": "lamp", "to": "me"})),
            answer="Both are on their way to you.",
            fails="ships each item to the address that the user named for it",
            reason="both went to the first address",
            failures=3,
        ),
    }
    before = suite(names, refund_policy=POLICY, refund_over_limit=REFUND) | {
        gift: Talk(
            user="Send the mug to my sister and the lamp to me.",
            calls=(("ship", {"item": "mug", "to": "sister"}), ("ship", {"item": "lamp"})),
            answer="The mug is on its way to your sister, the lamp to you.",
        ),
        "late_order": Talk(fails="apologizes", failures=8),
    }
    return compare(before, now)


def ends_early() -> Report:
    """An agent that gives up is cheap, which is no improvement."""
    asks = Talk(
        user="Yes, please cancel it.",
        calls=(("cancel_order", {"id": 1011}),),
        answer="It is cancelled; the money is on its way.",
        earlier=(Talk(),),
    )
    gives_up = Talk(
        calls=(),
        answer="I cannot help with that.",
        fails="cancels the order",
        reason="cancel_order was not called",
        cost=0.001,
    )
    names = NAMES[:10]
    before = dict.fromkeys(names, asks)
    return compare(before, {**before, **dict.fromkeys(names[:6], gives_up)})


def missing_shard() -> Report:
    told = MissingShards((3,), 4)
    lost = finding("shards", where="", message=told)
    names = [name for name in NAMES if name not in NAMES[10:15]]
    return compare(suite(), suite(names), findings=(lost,))


def fork() -> Report:
    """A stranger's pull request: the privileged job reports what the untrusted one left."""
    told = "the results are of a fork; settings of the default branch apply"
    note = finding("default_settings", where="", message=told, blocking=False)
    return compare(suite(refund_policy=POLICY), suite(refund_policy=FLIPPED), findings=(note,))


EXACT = "You are a teller. Always state the exact amount. Never guess a balance."
FRIENDLY = "You are a teller. Be friendly. Never guess a balance."
BALANCES = tuple(f"balance_{n}" for n in range(1, 13))


def _instruct(text: str, **fields: Any) -> dict[str, Any]:
    told = {"kind": "agent", "text": text, **fields}
    tool = {"kind": "tool", "name": "get_balance", "text": "Returns the balance of an account."}
    return {"agent": "teller", "conditions": {"instructions": [told, tool]}}


def prompt_changed() -> Report:
    exact = Talk(
        user="How much is in my checking account?",
        calls=(("get_balance", {"account": "checking"}),),
        answer="Your checking account has $1,512.40.",
        place=("tests/episodes/test_teller.py", 19),
        fields=_instruct(EXACT),
    )
    now = {
        name: replace(
            exact,
            answer="You are doing great, there is plenty in it!",
            fails=f"states the amount of account {at}" if at % 3 else "states the exact amount",
            reason="the amount is not in the answer",
            fields=_instruct(FRIENDLY),
        )
        for at, name in enumerate(BALANCES)
    }
    return compare(dict.fromkeys(BALANCES, exact), now)


def prompt_changed_in_replay() -> Report:
    """Without a baseline: the recordings have the instructions before."""
    missed = "the cassette did not answer a request: the cassette has no recording of this request"
    head = [
        episode(
            name,
            outcome="error",
            reason=f"{missed}; changed: messages[0].content",
            cassette_misses=1,
            nodeid=f"tests/episodes/test_teller.py::test_{name}",
            file="tests/episodes/test_teller.py",
            line=19,
            trajectory=None,
            **_instruct(FRIENDLY, recorded=EXACT),
        )
        for name in BALANCES
    ]
    return report(*head, baseline=NoBaseline("no run of main has come to its end yet"))


COMMENTS: dict[str, Callable[[], Report]] = {
    "1-green-cheaper-slower": green_cheaper_slower,
    "2-regression-answer": regression_answer,
    "3-tool-renamed": tool_renamed,
    "4-suite-drop": suite_drop,
    "5-error-storm": error_storm,
    "6-over-budget": over_budget,
    "7-first-run": first_run,
    "8-thousand": thousand,
    "9-junit-only": junit_only,
    "10-three-regressions": three_regressions,
    "11-ends-early": ends_early,
    "12-missing-shard": missing_shard,
    "13-fork": fork,
    "14-prompt-changed": prompt_changed,
    "15-prompt-changed-in-replay": prompt_changed_in_replay,
}


@cache
def build_comment_report(name: str) -> Report:
    """The report of a golden comment, built once."""
    return COMMENTS[name]()


def hostile_behaviour(text: str) -> Report:
    """The text in everything that an agent and its user say and call, before and now."""

    def talk(said: str, **fields: Any) -> Talk:
        calls = ((said, {said: said}), (said, {}))
        return Talk(user=said, calls=calls, answer=said, place=(text, 3), **fields)

    # Names of states, entries and fields come from the agent's world, too.
    changes = [
        {"entry": text, "after": {text: text}},
        {"entry": text, "before": {}, "after": {text: text}},
    ]
    state = {"name": text, "kind": "database", "changes": changes, "error": text}
    now = talk(f"{text} {text}", fails=text, reason=text, fields={"states": [state]})
    names = {text: now, f"{text}1": replace(now, fails=f"{text}\n"), f"{text}2": talk(text)}
    return compare(
        {name: talk(text) for name in names}, names, iterations=4, past=4, runs=1, suite="a b"
    )
