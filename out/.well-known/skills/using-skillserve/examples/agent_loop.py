"""An agent's loop around a skillserve server, in Python's standard library.

    python3 agent_loop.py [BASE]        BASE defaults to http://127.0.0.1:8080

The loop is complete; the model is not: `ScriptedModel` stands in for it, so that this runs without a provider and a key. To use a real one,
write a function that takes the messages and the tool definitions and returns an OpenAI-style assistant message, and give it to `run`.
"""

import json
import sys
import urllib.error
import urllib.request

MAX_TURNS = 10


class SkillServer:
    """The two calls that an agent's loop needs."""

    def __init__(self, base):
        self.base = base.rstrip("/")

    def tools(self):
        """Tool definitions for the model's request."""
        return self._send("GET", "/agent/tools")

    def run(self, tool_calls):
        """One tool message per call, in the same order. A tool that fails says so in its message."""
        return self._send("POST", "/agent/tool-call", {"tool_calls": tool_calls})

    def _send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            problem = json.load(error)
            raise SystemExit(f"{method} {path}: {problem['status']} {problem['code']}: {problem['detail']}") from None
        except urllib.error.URLError as error:
            raise SystemExit(f"{self.base} does not answer: {error.reason}") from None


class ScriptedModel:
    """Does what a model would: looks at what there is, reads a skill, reads a file, mends a mistake, answers."""

    def __init__(self):
        self.turn = 0

    def __call__(self, messages, tools):
        self.turn += 1
        results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
        if self.turn == 1:
            return self.call(("list_skills", {}))
        if self.turn == 2:
            names = json.loads(results["call_1_0"])["skills"]
            wanted = "calculator" if "calculator" in names else (names or ["calculator"])[0]
            # Two calls at once; the second is a mistake, to show that it does not harm the first.
            return self.call(("get_skill", {"skill_name": wanted}), ("get_skill", {"skill_name": "../" + wanted}))
        if self.turn == 3:
            skill = json.loads(results["call_2_0"]).get("skill_name", "calculator")
            return self.call(("read_file_in_skill", {"skill_name": skill, "file_path": "examples/basic.py"}))
        return {"role": "assistant", "content": "The skill was read; the work can begin."}

    def call(self, *calls):
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": f"call_{self.turn}_{index}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for index, (name, arguments) in enumerate(calls)
            ],
        }


def run(model, server, question):
    """Lets the model call tools until it answers; gives the whole conversation."""
    tools = server.tools()
    messages = [{"role": "user", "content": question}]
    for _ in range(MAX_TURNS):
        message = model(messages, tools)
        messages.append(message)
        tool_calls = message.get("tool_calls")
        if not tool_calls:
            return messages
        messages.extend(server.run(tool_calls))
    raise SystemExit(f"no answer after {MAX_TURNS} turns")


def show(messages):
    for message in messages:
        for call in message.get("tool_calls") or []:
            print(f"> {call['function']['name']} {call['function']['arguments']}")
        if message.get("content"):
            text = message["content"].replace("\n", " ")
            print(f"{message['role']}: {text[:100]}{'…' if len(text) > 100 else ''}")


if __name__ == "__main__":
    base = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
    show(run(ScriptedModel(), SkillServer(base), "How do I add two numbers exactly?"))
