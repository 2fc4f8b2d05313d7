"""The judge of the desk's replies.

It is scripted, so that the example needs neither network nor key. As a model, it errs. For
a real model only JUDGE differs:
JUDGE = "openai-chat:gpt-5-mini".
"""

import re

from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from ci_agent_eval.checks import Rubric

KIND = re.compile(r"sorry|glad|happy|of course|thank|please", re.IGNORECASE)


def judge(messages, info):
    prompt = messages[-1].parts[-1].content
    reply = prompt.partition("<Output>\n")[2].partition("\n</Output>")[0]
    is_kind = bool(KIND.search(reply))
    reason = "it has kind words" if is_kind else "it has no kind word"
    verdict = {"reason": reason, "pass": is_kind, "score": 0.9 if is_kind else 0.2}
    return ModelResponse([ToolCallPart(info.output_tools[0].name, verdict)])


JUDGE = FunctionModel(judge, model_name="scripted-judge")

CHECKS = {"*": [Rubric("The reply answers the question and is kind.", JUDGE, name="kind")]}
BUDGETS = {"*": {"max_turns": 1}}
