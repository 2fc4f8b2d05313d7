"""HTTP clients behind one interface, each with its own ways to read an answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextvars import copy_context
from types import ModuleType

import aiohttp
import httpx
import httpx2
import requests
import urllib3


class HTTPXClient:
    def __init__(self, library: ModuleType):
        self.client = library.Client()

    def post(self, url, body):
        answer = self.client.post(url, json=body)
        return answer.status_code, answer.content

    def stream(self, url, body, go_on: Callable[[bytes], bool]):
        with self.client.stream("POST", url, json=body) as answer:
            for chunk in answer.iter_bytes():
                if not go_on(chunk):
                    break

    def close(self):
        self.client.close()


class RequestsClient:
    def __init__(self):
        self.client = requests.Session()

    def post(self, url, body):
        answer = self.client.post(url, json=body)
        return answer.status_code, answer.content

    def stream(self, url, body, go_on):
        with self.client.post(url, json=body, stream=True) as answer:
            for chunk in answer.iter_content(chunk_size=None):
                if not go_on(chunk):
                    break

    def close(self):
        self.client.close()


class URLLib3Client:
    def __init__(self):
        self.client = urllib3.PoolManager(retries=False)

    def post(self, url, body):
        answer = self.client.request("POST", url, json=body)
        return answer.status, answer.data

    def stream(self, url, body, go_on):
        answer = self.client.request("POST", url, json=body, preload_content=False)
        for chunk in answer.stream(16, decode_content=True):
            if not go_on(chunk):
                break
        answer.close()

    def close(self):
        self.client.clear()


class AsyncClient:
    """Runs coroutines on a loop that stays, for it belongs to the session."""

    def __init__(self):
        self.runner = asyncio.Runner()

    def post(self, url, body):
        return self.runner.run(self.post_async(url, body), context=copy_context())

    def stream(self, url, body, go_on):
        self.runner.run(self.stream_async(url, body, go_on), context=copy_context())

    def close(self):
        self.runner.run(self.close_async())
        self.runner.close()


class AsyncHTTPXClient(AsyncClient):
    def __init__(self, library: ModuleType):
        super().__init__()
        self.client = library.AsyncClient()

    async def post_async(self, url, body):
        answer = await self.client.post(url, json=body)
        return answer.status_code, answer.content

    async def stream_async(self, url, body, go_on):
        async with self.client.stream("POST", url, json=body) as answer:
            async for chunk in answer.aiter_bytes():
                if not await asyncio.to_thread(go_on, chunk):
                    break

    async def close_async(self):
        await self.client.aclose()


class AIOHTTPClient(AsyncClient):
    def __init__(self):
        super().__init__()
        self.client = self.runner.run(self.open_async())

    async def open_async(self):
        return aiohttp.ClientSession()

    async def post_async(self, url, body):
        async with self.client.post(url, json=body) as answer:
            return answer.status, await answer.read()

    async def stream_async(self, url, body, go_on):
        async with self.client.post(url, data=json.dumps(body)) as answer:
            async for chunk in answer.content.iter_any():
                if not await asyncio.to_thread(go_on, chunk):
                    break

    async def close_async(self):
        await self.client.close()


CLIENTS = {
    "httpx": lambda: HTTPXClient(httpx),
    "httpx-async": lambda: AsyncHTTPXClient(httpx),
    "httpx2": lambda: HTTPXClient(httpx2),
    "httpx2-async": lambda: AsyncHTTPXClient(httpx2),
    "requests": RequestsClient,
    "urllib3": URLLib3Client,
    "aiohttp": AIOHTTPClient,
}
