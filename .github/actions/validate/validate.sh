#!/usr/bin/env bash
# Validates skills for the action: annotations, a table in the job's summary, and the exit code of the report.
set -euo pipefail

folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$folder/../../.." && pwd)
cli="$root/dist/cli/skillserve.cjs"
if [ ! -f "$cli" ]; then
  (cd "$root" && npm ci --ignore-scripts --no-audit --no-fund && npm run build) >&2
fi

options=()
[ -z "$TARGETS" ] || options+=(--target "$TARGETS")
[ -z "$FAIL_ON" ] || options+=(--fail-on "$FAIL_ON")
# Before the paths, which may begin with a dash.
options+=(--)
while IFS= read -r path; do
  [ -z "$path" ] || options+=("$path")
done <<< "$PATHS"

format=github
[ "$ANNOTATIONS" = true ] || format=text
code=0
node "$cli" validate --format "$format" "${options[@]}" || code=$?
# After wrong use there is no report.
if [ "$code" -lt 2 ] && [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  { node "$cli" validate --format json "${options[@]}" 2> /dev/null || true; } |
    node "$folder/summary.mjs" >> "$GITHUB_STEP_SUMMARY"
fi
exit "$code"
