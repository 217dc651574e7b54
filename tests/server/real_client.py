"""protolink's own client against a hosted agent: run by the peers' Python, with its URL.

Prints one JSON object of what came back.
"""

from __future__ import annotations

import asyncio
import json
import sys

from protolink.client import AgentClient
from protolink.models import Message, Task


async def main(url):
    client = AgentClient("http")
    said = {}
    card = await client.get_agent_card(url)
    said["card"] = [card.name, card.url, [skill.id for skill in card.skills]]

    task = await client.send_infer_task("hello", url)
    said["infer"] = [task.state.value, task.get_output()]
    task = await client.send_task(url, Task.create_tool_call("add", {"a": 2, "b": 3}))
    said["tool"] = [task.state.value, task.get_output()]
    task = await client.send_task(url, Task.create_tool_call("nope"))
    said["unknown"] = [task.state.value, task.metadata["error"]]
    peer = client.peer(url)
    said["peer"] = [await peer.invoke("again"), await peer.call_tool("add", a=1, b=1)]

    waiting = Task.create_tool_call("wait")
    submission = asyncio.create_task(client.send_task(url, waiting))
    canceled = None
    while canceled is None:  # until the host has begun with it
        try:
            canceled = await client.cancel_task(url, waiting.id, reason="enough")
        except Exception:
            await asyncio.sleep(0.01)
    submitted = await submission
    said["cancel"] = [
        canceled.state.value,
        submitted.state.value,
        submitted.metadata["cancel_reason"],
    ]

    try:
        await client.send_task(url, Task.create_infer("raise"))
    except Exception as error:
        said["raise"] = [type(error).__name__, error.status_code]
    try:
        await client.send_message(agent_url=url, message=Message.user("text"))
    except RuntimeError:
        said["inert"] = True

    await client.send_infer_task("one", url, metadata={})
    state = await client.describe_state(url)
    said["describe"] = [state.stores[0].name, state.stores[0].enabled, state.stores[0].exists]
    history = await client.compact_history(url, strategy="recent", max_messages=1)
    said["history"] = [history.before_messages, history.after_messages]
    state = await client.compact_state(url, session_id="ghost")
    said["compact"] = list(state.missing)
    state = await client.reset_state(url)
    said["reset"] = list(state.cleared)
    print(json.dumps(said))


asyncio.run(main(sys.argv[1]))
