"""protolink's own client against a hosted agent over A2A: run by the peers' Python, with its URL.

Prints one JSON object of what came back.
"""

from __future__ import annotations

import asyncio
import json
import sys

from protolink.client import AgentClient
from protolink.models import Message, Task


async def main(url):
    client = AgentClient("http", a2a=True)
    said = {}
    card = await client.get_a2a_agent_card(url)
    said["card"] = [card["name"], card["supportedInterfaces"][0]["url"] == url]

    task = Task.create(Message.user("hello big world"))
    done = await client.send_task(url, task, protocol="a2a")
    said["task"] = [done.state.value, done.get_output(), done.id == task.id]
    said["remote"] = [
        done.metadata["a2a_remote_state"],
        done.metadata["a2a_remote_agent_url"] == url,
    ]
    asked = await client.send_task(url, Task.create(Message.user("need")), protocol="a2a")
    said["asked"] = [asked.state.value, asked.messages[-1].parts[0].content]
    asked.add_message(Message.user("Athens"))
    more = await client.send_task(url, asked, protocol="a2a")
    said["more"] = [
        more.state.value,
        more.metadata["a2a_remote_task_id"] == asked.metadata["a2a_remote_task_id"],
    ]
    again = await client.send_task(url, Task.create(Message.user("need")), protocol="a2a")
    canceled = await client.cancel_task(url, again.id, reason="enough", protocol="a2a")
    said["canceled"] = [canceled.state.value, canceled.messages[-1].parts[0].content]
    native = await client.send_infer_task("natively", url)
    said["auto"] = [native.state.value, "a2a_remote_state" in native.metadata]
    print(json.dumps(said))


asyncio.run(main(sys.argv[1]))
