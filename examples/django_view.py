"""A Django view that asks an agent. Needs Django.

In a project, what is above ``main`` stands in ``settings.py``, ``views.py`` and ``urls.py``.
"""

import logging

from django import setup
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.test import Client
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from protolink_sync import AgentCard, AgentClient, TransportError, TransportTimeoutError
from protolink_sync.server import Agent

# One client for all requests and threads. It opens nothing before its first call, so it may be made
# before the server forks its workers.
agents = AgentClient("http", timeout=25)


@csrf_exempt  # an interface for programs; leave it out where a form of your pages asks
@require_POST
def ask(request: HttpRequest) -> JsonResponse:
    """Answer a question with an agent's help."""
    try:
        task = agents.send_infer_task(request.POST["question"], settings.AGENT_URL)
    except TransportTimeoutError:
        return JsonResponse({"error": "the agent needs too long"}, status=504)
    except TransportError as error:
        logging.getLogger(__name__).warning("%s", error)
        return JsonResponse({"error": "the agent cannot be asked"}, status=502)
    return JsonResponse({"state": task.state.value, "answer": task.text})


urlpatterns = [path("ask", ask)]


def main() -> None:
    agent = Agent(AgentCard("librarian", "recommends books", "http://127.0.0.1"))

    @agent.infer
    def answer(prompt: str) -> str:
        return f"{prompt} Read Faust."

    with agents, agent.serve("http://127.0.0.1:0") as server:
        settings.configure(
            AGENT_URL=server.url, ROOT_URLCONF=__name__, ALLOWED_HOSTS=["testserver"], USE_TZ=True
        )
        setup()
        # gunicorn would be given this application.
        application = get_wsgi_application()
        print("a WSGI application:", callable(application))
        browser = Client()
        reply = browser.post("/ask", {"question": "What shall I read?"})
        print(reply.status_code, reply.json()["answer"])

        server.close()
        reply = browser.post("/ask", {"question": "And then?"})
        print(reply.status_code, reply.json()["error"])


if __name__ == "__main__":
    main()
