"""protolink's own client reads streams of a hosted agent: run by the peers' Python, with its URL.

Prints one JSON object of what came.
"""

from __future__ import annotations

import asyncio
import json
import sys

from protolink.client import AgentClient
from protolink.models import Task


def as_dict(event):
    return event if isinstance(event, dict) else event.to_dict()


async def told(client, url, task):
    events = []
    try:
        async for event in client.send_task_streaming(url, task):
            events.append(as_dict(event))
    except Exception as error:
        events.append({"type": type(error).__name__, "content": str(error)})
    return events


def brief(events):
    return [
        [event["type"], event.get("llm_event_type"), event.get("new_state") or event.get("content")]
        for event in events
    ]


async def main(url):
    client = AgentClient("sse")
    said = {}
    said["streaming"] = (await client.get_agent_card(url)).capabilities.streaming

    events = await told(client, url, Task.create_infer("one \u2028\x85 two"))
    said["infer"] = brief(events)
    task = Task.from_dict(events[-1]["metadata"]["task"])
    said["task"] = [task.state.value, task.get_output()]
    said["tool"] = brief(await told(client, url, Task.create_tool_call("add", {"a": 2, "b": 3})))
    said["raise"] = brief(await told(client, url, Task.create_infer("raise")))

    waiting = Task.create_tool_call("wait")
    reading = asyncio.create_task(told(client, url, waiting))
    canceled = None
    while canceled is None:  # until the host has begun with it
        try:
            canceled = await client.cancel_task(url, waiting.id, reason="enough")
        except Exception:
            await asyncio.sleep(0.01)
    last = (await reading)[-1]
    said["cancel"] = [canceled.state.value, last["new_state"], last["metadata"]["cancel_reason"]]

    leaving = client.send_task_streaming(url, Task.create_tool_call("wait"))
    async for _ in leaving:
        break
    await leaving.aclose()
    said["left"] = (await told(client, url, Task.create_tool_call("reason")))[-1]["new_state"]
    print(json.dumps(said))


asyncio.run(main(sys.argv[1]))
