"""A real a2a-sdk 1.3.0 agent that speaks 1.0 and, by its compatibility layer, 0.3.

It prints one line ``READY <url>`` and serves until its standard input closes. JSON-RPC is at
``/rpc``. Cards: hybrid at the root; one version under ``/only-1.0`` and ``/only-0.3``; one that
names a tenant under ``/tenant``; one with an extended card behind it under ``/extended``.

The first word of the text says what happens:

==============  ==================================================================================
``need``        ask for input, and echo what comes then
``auth``        ask for credentials, and echo what comes then
``message``     answer with a bare message
``fail``        end the task as failed
``reject``      refuse the task
``raise``       let an exception out of the agent's code
``raiselate``   the same, after the task began
``chunks``      one artifact in three pieces
``context``     tell tenant, extensions and metadata of the request
``slow``        work 20 s; can be cancelled
``quiet N``     say nothing for N seconds
==============  ==================================================================================

Anything else is echoed as an artifact.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys

import httpx
import uvicorn
from a2a.server.agent_execution.agent_executor import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette


class Kitchen(AgentExecutor):
    """Do what the text says."""

    def __init__(self):
        self.running = {}

    async def execute(self, context, queue):
        text = context.get_user_input()
        word, _, rest = text.partition(" ")
        fresh = context.current_task is None
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        if word == "message":
            await queue.enqueue_event(updater.new_agent_message([Part(text="said: " + rest)]))
            return
        if fresh:
            await queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                    history=[context.message],
                )
            )
        if word == "raise":
            raise RuntimeError("kaput")
        await updater.start_work()
        if word == "raiselate":
            raise RuntimeError("kaput")
        await self.answer(context, updater, word, rest, fresh)

    async def answer(self, context, updater, word, rest, fresh):
        def said(text):
            return updater.new_agent_message([Part(text=text)])

        text = context.get_user_input()
        if word == "need" and fresh:
            await updater.requires_input(said("which city?"))
        elif word == "auth" and fresh:
            await updater.requires_auth(said("who are you?"))
        elif word == "fail":
            await updater.failed(said("no luck"))
        elif word == "reject":
            await updater.reject(said("not me"))
        elif word == "chunks":
            for number, piece in enumerate(("Hel", "lo, wor", "ld!")):
                await updater.add_artifact(
                    [Part(text=piece)], artifact_id="a", append=number > 0, last_chunk=number == 2
                )
            await updater.complete()
        else:
            if word in {"slow", "quiet"}:
                self.running[context.task_id] = asyncio.current_task()
                await asyncio.sleep(20 if word == "slow" else float(rest))
            told = self.context(context) if word == "context" else "echo: " + text
            await updater.add_artifact([Part(text=told)], artifact_id="a", last_chunk=True)
            await updater.complete()

    @staticmethod
    def context(context):
        return json.dumps(
            {
                "tenant": context.tenant,
                "extensions": sorted(context.requested_extensions),
                "metadata": dict(context.metadata.items()),
            }
        )

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()
        task = self.running.pop(context.task_id, None)
        if task is not None:
            task.cancel()


def card(url, versions, *, tenant="", extended=False, name="peer"):
    return AgentCard(
        name=name,
        description="does what the text says",
        version="1",
        capabilities=AgentCapabilities(
            streaming=True, push_notifications=True, extended_agent_card=extended
        ),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="Echo", description="echoes", tags=["echo"])],
        supported_interfaces=[
            AgentInterface(
                protocol_binding="JSONRPC", protocol_version=v, url=url + "/rpc", tenant=tenant
            )
            for v in versions
        ],
    )


async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    both = card(url, ["1.0", "0.3"], extended=True)
    store = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Kitchen(),
        task_store=InMemoryTaskStore(),
        agent_card=both,
        push_config_store=store,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(trust_env=False), store),
        extended_agent_card=card(url, ["1.0", "0.3"], extended=True, name="peer, extended"),
    )
    routes = create_agent_card_routes(both, cache_control="max-age=60")
    for prefix, one in {
        "only-1.0": card(url, ["1.0"], extended=True),
        "only-0.3": card(url, ["0.3"], extended=True),
        "tenant": card(url, ["1.0"], tenant="acme"),
    }.items():
        routes += create_agent_card_routes(one, card_url=f"/{prefix}/.well-known/agent-card.json")
    routes += create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True)
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="critical"))
    serving = asyncio.get_running_loop().create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.02)
    print("READY", url, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    # At once: a graceful stop waits for the streams that clients have left.
    os._exit(serving.done())


asyncio.run(main())
