from ci_agent_eval import scenarios


def desk(message):
    """Scripted, where a product has a model."""
    return "From nine to five, every day." if "open" in message else "I do not know."


@scenarios("desk.yaml")
def test_desk(scenario):
    scenario.run(desk)
