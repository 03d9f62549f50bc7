#!/usr/bin/env bash
# scripts/course check builds and runs the check of an assignment. ninja is a stub: its list of steps is too long for a
# pipe, as is what the compiler says. The course is a copy, so that no answers of a student change. Then the check of
# assignment 1 on an answer that is infinite.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -p "$place/reel/scripts" "$place/reel/course" "$place/build/bin" "$place/stubs"
cp "$root/scripts/course" "$place/reel/scripts"
cp -r "$root/course/blanks" "$place/reel/course"
touch "$place/build/build.ninja"
cat >"$place/stubs/ninja" <<'NINJA'
#!/usr/bin/env bash
case " $* " in
  *" -n "*) seq -f "[%.0f/$STEPS] a step of the build, with a name of some length" "$STEPS" ;;
  *)
    [ -z "${MISTAKE:-}" ] && exit
    seq -f "$MISTAKE: error: number %.0f" 5000
    exit 1
    ;;
esac
NINJA
printf '#!/bin/sh\necho "2 of 3 right"\nexit 1\n' >"$place/build/bin/course_1_mine"
chmod +x "$place/stubs/ninja" "$place/build/bin/course_1_mine"
export PATH=$place/stubs:$PATH REEL_BUILD=$place/build

failed=0
# expect NAME WORDS: checks assignment 1; WORDS is all it says, and its exit code is 1, that of the check or the build.
expect() {
  local code=0 words
  words=$("$place/reel/scripts/course" check 1 2>&1) || code=$?
  if [ "$code" -ne 1 ] || [ "$words" != "$2" ]; then
    echo "$1: exit code $code; it said:" >&2
    head -n 20 <<<"$words" >&2
    failed=1
  fi
}
export STEPS=20000
expect "first" "course/mine/1.h is yours: replace each BLANK.
Building Reel first: 20000 steps, some minutes ...
2 of 3 right"
STEPS=2
expect "again" "2 of 3 right"
STEPS=0  # nothing to do
expect "built" "2 of 3 right"
export MISTAKE=course/mine/1.h:7
five() { seq -f "$MISTAKE: error: number %.0f" 5; }
expect "a mistake" "course/mine/1.h does not compile:
$(five)"
MISTAKE=course/check.h:7
expect "a mistake elsewhere" "course/mine/1.h does not compile:
$(five)"

# A division by 1 / 2 * h, which is 0 in C++, is not right.
sed 's|/ (2 \* h)|/ (1 / 2 * h)|' "$root/course/solutions/1.h" >"$place/1.h"
"${CXX:-c++}" -std=c++20 -I"$root" -DCOURSE_ANSWER="\"$place/1.h\"" "$root/course/check_1.cpp" -o "$place/check_1"
"$place/check_1" >"$place/words" || true
grep -q "^wrong  central differences: .* got inf" "$place/words" || { cat "$place/words" >&2; failed=1; }
exit $failed
