"""An agent's loop that uses skills: complete, and nothing but the standard library.

    python3 examples/agent_loop.py "What is the weather in Lyon?"

SKILLS_URL is the skillserve server. The model is any service that speaks OpenAI's Chat Completions: OPENAI_BASE_URL,
OPENAI_API_KEY and OPENAI_MODEL name it. Without them it is the scripted one of examples/fake-model.mts.
"""

import json
import os
import sys
import urllib.error
import urllib.request

SKILLS_URL = os.environ.get("SKILLS_URL", "http://127.0.0.1:8080")
OPENAI_BASE_URL = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8081/v1")
OPENAI_API_KEY = os.environ.get("OPENAI_API_KEY", "")
OPENAI_MODEL = os.environ.get("OPENAI_MODEL", "scripted")

INSTRUCTIONS = (
    "Skills are folders of instructions. Before you work on a task, list or search the skills, and read "
    "the one that fits. Follow it, and read the files that it names when you need them."
)

MAX_TURNS = 10


def answer(question):
    tools = fetch_json(f"{SKILLS_URL}/agent/tools?toolset=explore")
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question}]
    for _ in range(MAX_TURNS):
        message = complete(messages, tools)
        messages.append(message)
        tool_calls = message.get("tool_calls")
        if not tool_calls:
            return message["content"]
        for call in tool_calls:
            print(f"> {call['function']['name']} {call['function']['arguments']}")
        messages.extend(fetch_json(f"{SKILLS_URL}/agent/tool-call", {"tool_calls": tool_calls}))
    raise SystemExit(f"no answer after {MAX_TURNS} turns")


def complete(messages, tools):
    body = {"model": OPENAI_MODEL, "messages": messages, "tools": tools}
    completion = fetch_json(f"{OPENAI_BASE_URL}/chat/completions", body, {"Authorization": f"Bearer {OPENAI_API_KEY}"})
    return completion["choices"][0]["message"]


def fetch_json(url, body=None, headers=None):
    """GET, or POST when there is a body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{url} answered {error.code}: {error.read().decode()}") from None
    except urllib.error.URLError:
        is_model = url.startswith(OPENAI_BASE_URL)
        message = f"is the model running at {OPENAI_BASE_URL}?" if is_model else f"is skillserve running at {SKILLS_URL}?"
        raise SystemExit(message) from None


if __name__ == "__main__":
    print(answer(sys.argv[1] if len(sys.argv) > 1 else "What is the weather in Lyon?"))
