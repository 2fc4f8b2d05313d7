"""Work in other threads and tasks."""

import asyncio
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

from shopdesk import effort

POOL = ThreadPoolExecutor(1)


class Worker:
    """A thread behind a queue, which outlives the tests that use it."""

    def __init__(self):
        self.jobs = queue.Queue()
        self.thread = threading.Thread(target=self.run_jobs, daemon=True)
        self.thread.start()

    def run_jobs(self):
        while (job := self.jobs.get()) is not None:
            item, answers = job
            answers.put(effort.estimate_queued(item))

    def ask_worker(self, item):
        answers = queue.Queue()
        self.jobs.put((item, answers))
        return answers.get(timeout=60)

    def stop_worker(self):
        self.jobs.put(None)
        self.thread.join(60)


def estimate_in_thread(item: str) -> str:
    """Estimate an item in a thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(effort.estimate_threaded(item)))
    thread.start()
    thread.join()
    return found[0]


def estimate_in_pool(item: str) -> str:
    """Estimate an item in the pool."""
    return POOL.submit(effort.estimate_pooled, item).result(60)


async def estimate_in_tasks(item):
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(effort.estimate_awaited(item))
    parts = [
        await task,
        await asyncio.to_thread(effort.estimate_beside, item),
        await loop.run_in_executor(None, effort.estimate_executed, item),
    ]
    async for part in effort.stream_parts(item):
        parts.append(part)
    return ", ".join(parts)
