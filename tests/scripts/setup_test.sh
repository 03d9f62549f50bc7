#!/usr/bin/env bash
# scripts/setup asks at a terminal and nowhere else, and installs only what is missing. dpkg-query and apt-get are stubs:
# all packages but gnuplot-nox are there.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
printf '#!/bin/sh\ncase "$*" in *gnuplot-nox*) exit 1;; esac\necho installed\n' >"$place/dpkg-query"
printf '#!/bin/sh\necho "$*" >>%s/calls\n' "$place" >"$place/apt-get"
printf '#!/bin/sh\nexec "$@"\n' >"$place/sudo"
chmod +x "$place"/*
export PATH=$place:$PATH
unset REEL_YES

failed=0
# expect NAME INSTALLS(0|1) CODE: what the last call did, which left its exit code in $code and its words in $place/words.
expect() {
  local installs=0
  grep -q "install -y.* gnuplot-nox$" "$place/calls" 2>/dev/null && installs=1
  if [ "$installs $code" != "$2 $3" ]; then
    echo "$1: installs $installs, exit code $code; expected $2 and $3. It said:" >&2
    cat "$place/words" >&2
    failed=1
  fi
  rm -f "$place/calls"
}
at_terminal() {  # ANSWER ARGUMENTS...
  local answer=$1
  shift
  code=0
  script -qec "$root/scripts/setup $*" /dev/null <<<"$answer" >"$place/words" 2>&1 || code=$?
}

at_terminal y
expect "yes" 1 0
grep -q "install them by.*apt-get?" "$place/words" || { echo "it did not ask" >&2; failed=1; }
at_terminal n
expect "no" 0 1
at_terminal n --yes
expect "--yes" 1 0
at_terminal n --yes cmake
expect "--yes and a package" 1 0
code=0
"$root/scripts/setup" </dev/null >"$place/words" 2>&1 || code=$?
expect "no terminal" 1 0
sed -i 's/exit 1/:/' "$place/dpkg-query"
at_terminal n
expect "nothing is missing" 0 0
exit $failed
