"""a2a-sdk's own client against a hosted agent: run by the peers' Python, with its URL.

Prints one JSON object of what came back.
"""

from __future__ import annotations

import asyncio
import json
import sys

from a2a.client import ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import new_data_message, new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)


def texts(artifacts):
    return [part.text for artifact in artifacts for part in artifact.parts]


def name(status):
    return TaskState.Name(status.state)


def sent(text, **members):
    message = new_text_message(text, role=Role.ROLE_USER, **members)
    return SendMessageRequest(message=message)


async def unary(url, said):
    client = await ClientFactory(ClientConfig(streaming=False)).create_from_url(url)
    (answer,) = [event async for event in client.send_message(sent("hello big world"))]
    task = answer.task
    said["unary"] = [name(task.status), texts(task.artifacts), len(task.history)]
    got = await client.get_task(GetTaskRequest(id=task.id, history_length=0))
    said["get"] = [name(got.status), texts(got.artifacts), len(got.history)]
    page = await client.list_tasks(ListTasksRequest(page_size=1))
    said["list"] = [task.id for task in page.tasks] == [task.id]
    (asked,) = [event async for event in client.send_message(sent("need"))]
    said["asked"] = [name(asked.task.status), asked.task.status.message.parts[0].text]
    more = sent("Athens", task_id=asked.task.id, context_id=asked.task.context_id)
    (done,) = [event async for event in client.send_message(more)]
    said["done"] = [name(done.task.status), len(done.task.history), done.task.id == asked.task.id]
    errors = [
        client.get_task(GetTaskRequest(id="ghost")),
        client.cancel_task(CancelTaskRequest(id=task.id)),
        anext(client.send_message(SendMessageRequest(message=new_data_message({"x": 1})))),
    ]
    said["errors"] = []
    for call in errors:
        try:
            await call
        except Exception as error:
            said["errors"].append(type(error).__name__)
    await client.close()


async def streaming(url, said):
    client = await ClientFactory(ClientConfig()).create_from_url(url)
    events = [event async for event in client.send_message(sent("one two three"))]
    said["kinds"] = [event.WhichOneof("payload") for event in events]
    updates = [e.artifact_update for e in events if e.HasField("artifact_update")]
    said["pieces"] = texts([update.artifact for update in updates])
    said["append"] = [update.append for update in updates]
    said["stream end"] = name(events[-1].status_update.status)

    running = client.send_message(sent("wait"))
    task = (await anext(running)).task
    follower = client.subscribe(SubscribeToTaskRequest(id=task.id))
    said["subscribed"] = (await anext(follower)).task.id == task.id
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    said["canceled"] = name(canceled.status)
    for stream in (running, follower):
        rest = [event async for event in stream]
        said.setdefault("ends", []).append(name(rest[-1].status_update.status))
    await client.close()


async def main(url):
    said = {}
    await unary(url, said)
    await streaming(url, said)
    print(json.dumps(said))


asyncio.run(main(sys.argv[1]))
