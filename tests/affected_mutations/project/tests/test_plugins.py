"""Modules by name, registries, decorators, constants."""

from shopdesk import badges, carriers, customs, formulas, gifts, holidays, rules, shipping
from shopdesk.desk import Desk, QuietDesk

from ci_agent_eval import conversation


@conversation("carrier_express", lambda: QuietDesk("Carrier desk.", carriers.book_carrier))
def test_express(agent):
    assert "express" in agent.send("Book the carrier express")


@conversation("carrier_saver", lambda: QuietDesk("Carrier desk.", carriers.book_carrier))
def test_saver(agent):
    assert "saver" in agent.send("Book the carrier saver")


@conversation("rules", lambda: QuietDesk("Rule desk.", rules.apply_rules))
def test_rules(agent):
    assert "#" in agent.send("Apply the rules to 500")


@conversation("badges", lambda: QuietDesk("Badge desk.", badges.show_badges))
def test_badges(agent):
    assert "#" in agent.send("Show the badges of Ada")


@conversation("gift_wrap", lambda: QuietDesk("Gift desk.", gifts.wrap_gift))
def test_gift_wrap(agent):
    assert "#" in agent.send("Wrap a small gift")


@conversation("gift_ribbon", lambda: QuietDesk("Gift desk.", gifts.order_ribbon))
def test_gift_ribbon(agent):
    assert "#" in agent.send("Order a ribbon for a vase")


@conversation("parcel_quote", lambda: Desk("parcel", shipping.quote_parcel))
def test_quote(agent):
    assert "#" in agent.send("Quote a parcel of weight 4")


@conversation("parcel_duty", lambda: Desk("parcel", customs.quote_duty))
def test_duty(agent):
    assert "#" in agent.send("Quote the duty of weight 6")


@conversation("holiday", lambda: QuietDesk("Holiday desk.", holidays.next_holiday))
def test_holiday(agent):
    assert "#" in agent.send("Tell the next holiday of 2026")


@conversation("formula", lambda: QuietDesk("Formula desk.", formulas.apply_formula))
def test_formula(agent):
    assert "#" in agent.send("Apply the formula to 12")


@conversation("bonus", lambda: QuietDesk("Bonus desk.", formulas.add_bonus))
def test_bonus(agent):
    assert "#" in agent.send("Add the bonus to 12")


@conversation("points", lambda: QuietDesk("Points desk.", formulas.count_points))
def test_points(agent):
    assert "#" in agent.send("Count the points of 1200")


@conversation("tax", lambda: QuietDesk("Tax desk.", formulas.add_tax))
def test_tax(agent):
    assert "#" in agent.send("Add the tax to 1200")


@conversation("bouquet", lambda: QuietDesk("Flower desk.", formulas.price_bouquet))
def test_bouquet(agent):
    assert "#" in agent.send("Price a bouquet of 3")
