"""A real a2a-sdk 0.3.26 agent: JSON-RPC at ``/``, the card at both well-known paths.

The same agent is at ``/bare``, where no card is.

It prints one line ``READY <url>`` and serves until its standard input closes. The first word of
the text says what happens: ``need`` asks for input, ``message`` answers with a bare message,
``fail`` fails, ``raise`` raises before any event, ``raiselate`` after some, ``chunks`` sends one
artifact in three pieces, ``slow`` works 20 s and can be cancelled, ``quiet N`` says nothing for N
seconds; anything else is echoed as an artifact.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys

import httpx
import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    Part,
    Task,
    TaskState,
    TaskStatus,
    TextPart,
)


def text(words):
    return [Part(root=TextPart(text=words))]


class Kitchen(AgentExecutor):
    """Do what the text says."""

    def __init__(self):
        self.running = {}

    async def execute(self, context, queue):
        words = context.get_user_input()
        word, _, rest = words.partition(" ")
        fresh = context.current_task is None
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        if word == "raise":
            raise RuntimeError("kaput")
        if word == "message":
            await queue.enqueue_event(updater.new_agent_message(text("said: " + rest)))
            return
        if fresh:
            await queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=TaskStatus(state=TaskState.submitted),
                    history=[context.message],
                )
            )
        await updater.start_work()
        if word == "raiselate":
            await asyncio.sleep(0.2)
            raise RuntimeError("kaput")
        if word == "need" and fresh:
            await updater.requires_input(updater.new_agent_message(text("which city?")), final=True)
        elif word == "fail":
            await updater.failed(updater.new_agent_message(text("no luck")))
        elif word == "chunks":
            for number, piece in enumerate(("Hel", "lo, wor", "ld!")):
                await updater.add_artifact(
                    text(piece), artifact_id="a", append=number > 0, last_chunk=number == 2
                )
            await updater.complete()
        else:
            if word in {"slow", "quiet"}:
                self.running[context.task_id] = asyncio.current_task()
                try:
                    await asyncio.sleep(20 if word == "slow" else float(rest))
                except asyncio.CancelledError:
                    # What cancel() tells goes to its own caller alone, not to open streams.
                    await updater.cancel()
                    return
            await updater.add_artifact(text("echo: " + words), artifact_id="a", last_chunk=True)
            await updater.complete()

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()
        task = self.running.pop(context.task_id, None)
        if task is not None:
            task.cancel()


async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def card(name):
        return AgentCard(
            name=name,
            description="does what the text says",
            version="1",
            url=url + "/",
            capabilities=AgentCapabilities(streaming=True, push_notifications=True),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[AgentSkill(id="echo", name="Echo", description="echoes", tags=["echo"])],
            supports_authenticated_extended_card=True,
        )

    store = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Kitchen(),
        task_store=InMemoryTaskStore(),
        push_config_store=store,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(trust_env=False), store),
    )
    served = A2AStarletteApplication(
        agent_card=card("old peer"),
        http_handler=handler,
        extended_agent_card=card("old peer, extended"),
    )
    app = served.build()
    served.add_routes_to_app(app, agent_card_url="/hidden.json", rpc_url="/bare")
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    serving = asyncio.get_running_loop().create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.02)
    print("READY", url, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    # At once: a graceful stop waits for the streams that clients have left.
    os._exit(serving.done())


asyncio.run(main())
