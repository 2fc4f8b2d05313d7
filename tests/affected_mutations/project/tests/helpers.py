"""Helpers of the tests."""


def replaced_word():
    return "Ahoy"


class DeskTests:
    """Tests that two classes inherit."""

    question = "Tell the mode of the desk"

    def ask_desk(self, desk):
        return desk.respond(self.question)
