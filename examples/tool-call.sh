#!/bin/sh
# One call of list_skills in each dialect, then two calls at once: sh examples/tool-call.sh
# SKILLS_URL is the skillserve server.
set -eu
base=${SKILLS_URL:-http://127.0.0.1:8080}

if ! curl -s -o /dev/null "$base/livez"; then
  echo "is skillserve running at $base?" >&2
  exit 1
fi

call () {
  echo "# $1"
  curl -sS --fail "$base/agent/tool-call" -H 'Content-Type: application/json' -d "$2"
  echo
}

call 'OpenAI Chat Completions' '{"id":"call_1","type":"function","function":{"name":"list_skills","arguments":"{}"}}'
call 'OpenAI Responses' '{"type":"function_call","call_id":"call_1","name":"list_skills","arguments":"{}"}'
call 'Anthropic' '{"type":"tool_use","id":"toolu_1","name":"list_skills","input":{}}'
call 'Gemini' '{"functionCall":{"id":"call-1","name":"list_skills","args":{}}}'
call 'MCP tools/call' '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_skills","arguments":{}}}'
call 'Two calls, the second fails' '{"tool_calls":[
  {"id":"call_1","type":"function","function":{"name":"list_skills","arguments":"{}"}},
  {"id":"call_2","type":"function","function":{"name":"get_skill","arguments":"{\"skill_name\":\"missing\"}"}}
]}'
