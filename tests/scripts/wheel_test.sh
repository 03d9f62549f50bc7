#!/usr/bin/env bash
# scripts/wheel refuses what is no folder, before it does anything.
set -euo pipefail
wheel=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/wheel
for words in --help "-o out" "one two"; do
  status=0
  # shellcheck disable=SC2086 # a list of words
  said=$("$wheel" $words 2>&1) || status=$?
  [ "$status" = 2 ] && [ "$said" = "usage: scripts/wheel [FOLDER]" ] || { echo "scripts/wheel $words: $status, $said"; exit 1; }
done
