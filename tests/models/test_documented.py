"""The examples of ProtoLink's Models document, with protolink replaced by protolink_sync."""

from __future__ import annotations

import pytest

from protolink_sync.models import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    Artifact,
    Message,
    Part,
    Task,
    TaskState,
)


def test_agent_card():
    card = AgentCard(
        name="weather_agent",
        description="Provides weather information",
        url="https://api.example.com/weather",
        version="1.2.0",
        input_formats=["text/plain", "application/json"],
        output_formats=["text/plain", "application/json", "text/markdown"],
        capabilities=AgentCapabilities(streaming=True, tool_calling=True, max_concurrency=5),
    )
    json_data = card.to_dict()

    assert json_data["name"] == "weather_agent"
    assert AgentCard.from_dict(json_data) == card


def test_agent_card_from_dict():
    json_data = {
        "name": "weather_agent",
        "description": "Weather service",
        "url": "https://api.example.com/weather",
    }

    assert AgentCard.from_dict(json_data).url == "https://api.example.com/weather"


def test_agent_skill():
    skill = AgentSkill(
        id="weather_forecast",
        description="Get weather forecast for any location",
        input_schema={
            "type": "object",
            "properties": {"location": {"type": "string"}},
            "required": ["location"],
            "additionalProperties": False,
        },
        output_schema={"type": "object", "additionalProperties": True},
        tags=["weather", "forecast", "location"],
        examples=[{"location": "New York"}, {"location": "London"}],
    )

    assert AgentSkill.from_dict(skill.to_dict()) == skill


def test_task_methods():
    task = Task()
    task.add_message(Message.user("What's the weather?"))
    task.add_message(Message.agent("It's sunny!"))
    artifact = Artifact()
    artifact.add_text("Weather analysis complete")
    task.add_artifact(artifact)
    task.update_state(TaskState.WORKING)
    task.update_state(TaskState.COMPLETED)

    assert task.state is TaskState.COMPLETED


def test_task_rejects_a_direct_jump():
    task = Task.create(Message.user("hello"))

    with pytest.raises(ValueError) as caught:
        task.update_state(TaskState.COMPLETED)

    assert str(caught.value) == "Invalid task state transition: submitted -> completed"


def test_task_complete():
    task = Task.create(Message.user("hello"))
    task.complete("The weather is sunny and 75°F.")

    assert task.state is TaskState.COMPLETED
    assert task.metadata["state_history"][-1]["new_state"] == "completed"


def test_task_fail():
    task = Task()
    task.fail("Weather API unavailable")

    assert task.state is TaskState.FAILED
    assert task.metadata["error"] == "Weather API unavailable"


def test_task_to_and_from_dict():
    task_dict = Task().to_dict()
    assert (task_dict["state"], bool(task_dict["id"])) == ("submitted", True)

    task = Task.from_dict({"state": "working", "messages": [], "artifacts": []})
    assert task.state is TaskState.WORKING


def test_task_create():
    task = Task.create(Message.user("Analyze this data"))

    assert len(task.messages) == 1
    assert task.state is TaskState.SUBMITTED
    assert Task.create_infer(prompt="Calculate this").messages[0].parts[0].type == "infer"


def test_task_example():
    task = Task.create(Message.user("What's the weather in New York?"))
    task.begin()
    task.complete("It's 72°F and sunny in New York.")
    assert task.is_terminal

    task = Task.create(Message.user("Hello")).complete("Hi there!")
    assert task.text == "Hi there!"


def test_message_methods():
    msg = Message(role="user")
    msg.add_text("Hello, world!")
    assert len(msg.parts) == 1
    assert msg.parts[0].content == "Hello, world!"

    msg = Message(role="agent")
    msg.add_part(Part.text("Here's the analysis:"))
    msg.add_part(Part.json({"result": "success"}))
    assert len(msg.parts) == 2

    msg_dict = Message.user("Hello").to_dict()
    assert (msg_dict["role"], msg_dict["parts"][0]["content"]) == ("user", "Hello")


def test_message_from_dict():
    msg_dict = {
        "id": "msg-123",
        "role": "user",
        "parts": [{"type": "text", "content": "Hello"}],
        "timestamp": "2023-01-01T00:00:00Z",
    }

    assert Message.from_dict(msg_dict).to_dict() == msg_dict


def test_message_example():
    image_data = {"url": "https://example.com/x.png"}
    msg = Message(role="user")
    msg.add_text("Here's an image:")
    msg.add_part(Part(type="image", content=image_data))

    assert msg.to_dict()["parts"][1] == {"type": "image", "content": image_data}


def test_part_example():
    text_part = Part.text("Hello, world!")
    tool_call = Part.tool_call(tool_name="get_weather", args={"location": "Athens"})
    infer_part = Part.infer(prompt="Who are you?")
    route_part = Part.route("quality", reason="ready for review")

    assert [p.type for p in (text_part, tool_call, infer_part, route_part)] == [
        "text",
        "tool_call",
        "infer",
        "route",
    ]


def test_artifact_example():
    chart_image_data = {"raw": "AA==", "mediaType": "image/png"}
    artifact = Artifact(kind="diagnostic", name="analysis report", media_type="application/json")
    artifact.add_text("Analysis Results:")
    artifact.add_part(Part.json({"results": [1, 2, 3]}))
    artifact.add_part(Part(type="image", content=chart_image_data))
    artifact.metadata["type"] = "analysis_report"
    artifact.metadata["version"] = "1.0"

    assert Artifact.from_dict(artifact.to_dict()) == artifact
