#!/usr/bin/env bash
# Installs skillserve and validates skills with it: annotations, a table in the job's summary, and the exit code of the
# report.
set -euo pipefail

action=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Outside of the workspace: an .npmrc of a pull request could name another registry.
tool=$(mktemp -d "${RUNNER_TEMP:-/tmp}/skillserve-XXXXXX")
trap 'rm -rf "$tool"' EXIT
if [ -z "$PACKAGE" ]; then
  # The commit that the workflow names, and not what somebody has published as skillserve.
  (cd "$action/../../.." && npm ci --ignore-scripts --no-audit --no-fund && npm pack --pack-destination "$tool") >&2
  PACKAGE=$(echo "$tool"/skillserve-*.tgz)
elif [ -f "$PACKAGE" ]; then
  PACKAGE=$(realpath "$PACKAGE")
fi
(cd "$tool" && npm install --prefix . --ignore-scripts --no-audit --no-fund "$PACKAGE") >&2
cli=$tool/node_modules/.bin/skillserve

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
"$cli" validate --format "$format" "${options[@]}" || code=$?
# After wrong use there is no report.
if [ "$code" -lt 2 ] && [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  { "$cli" validate --format json "${options[@]}" 2> /dev/null || true; } |
    node "$action/summary.mjs" >> "$GITHUB_STEP_SUMMARY"
fi
exit "$code"
