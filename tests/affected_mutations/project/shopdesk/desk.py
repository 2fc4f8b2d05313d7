"""A desk: an agent with a prompt and tools."""

from shopdesk import model, prompts


class Desk:
    """Answer messages with a prompt and tools."""

    few_shot = ""

    def __init__(self, prompt, *tools):
        self.prompt = prompt
        self.tools = tools

    def build_instructions(self):
        text = prompts.load_prompt(self.prompt)
        return text + prompts.load_examples(self.few_shot) if self.few_shot else text

    def respond(self, message):
        return model.answer_message(self.build_instructions(), self.tools, message)


class RefundDesk(Desk):
    """The refund desk, which has examples."""

    few_shot = "refund"


class QuietDesk(Desk):
    """A desk without a prompt file."""

    def build_instructions(self):
        return self.prompt
