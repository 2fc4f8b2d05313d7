"""Environment variables, configuration, packages, names of files."""

import pytest
from helpers import DeskTests
from shopdesk import flags, inventory, options, outside, regions
from shopdesk.desk import Desk, QuietDesk

from ci_agent_eval import conversation

QUESTIONS = {
    "region": (regions.tell_region, "Tell the region of Ada"),
    "hours": (regions.tell_hours, "Tell the hours of Monday"),
    "expanded": (regions.expand_path, "Expand the path of file lamp"),
    "signed": (regions.sign_receipt, "Sign the receipt 42"),
    "options": (options.show_options, "Show the options of front"),
    "ratecard": (outside.read_ratecard, "Read the rate card of Malta"),
    "pricelist": (outside.read_pricelist, "Read the price list of lamp"),
    "profile": (outside.read_profile, "Read the profile of Ada"),
    "midnight": (outside.tell_midnight, "Tell midnight of Rome"),
    "lost": (outside.read_lost_property, "Read the list of lost property for glove"),
    "depots": (inventory.list_depots, "List the depots of all"),
    "flag": (inventory.check_flag, "Check whether a flag is set: holiday"),
    "size": (inventory.measure_file, "Measure the file with name season.txt"),
    "script": (inventory.check_script, "Check the script badge.sh"),
    "resolved": (inventory.resolve_policy, "Resolve the link of policy"),
    "desk_hours": (inventory.read_hours, "Read the hours of Monday"),
    "manual": (inventory.read_manual, "Read a page of the manual: one"),
    "source": (inventory.show_source, "Show the source of a tool: shown"),
}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.episode
def test_question(episode, name):
    tool, question = QUESTIONS[name]
    with episode.turn(question) as turn:
        reply = QuietDesk(f"Desk of {name}.", tool).respond(question)
        for call in reply["tool_calls"]:
            turn.tool_call(call["name"], call["arguments"], result=call["result"])
        turn.reply(reply["text"], source="scripted")
    assert episode.tool_calls


class TestMode(DeskTests):
    """A class with an inherited question."""

    @pytest.mark.episode(scenario_id="mode")
    def test_mode(self, episode):
        with episode.turn(self.question) as turn:
            turn.reply(self.ask_desk(Desk("general", flags.tell_mode))["text"], source="scripted")
        assert episode.turns
