"""Work in another process of Python."""

import multiprocessing

from shopdesk import crunch_weights


def weigh_order(kilos: int) -> int:
    """Weigh an order in kilos."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=crunch_weights.send_weight, args=(sender, kilos))
    process.start()
    weight = receiver.recv()
    process.join()
    return weight
