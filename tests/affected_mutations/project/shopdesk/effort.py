"""Estimates, each for another kind of worker."""


def estimate_threaded(item):
    return f"{item}: {2} hours"


def estimate_pooled(item):
    return f"{item}: {3} hours"


def estimate_queued(item):
    return f"{item}: {4} hours"


async def estimate_awaited(item):
    return f"{item} awaited {5}"


def estimate_beside(item):
    return f"{item} beside {6}"


def estimate_executed(item):
    return f"{item} executed {7}"


async def stream_parts(item):
    yield f"{item} streamed {8}"
