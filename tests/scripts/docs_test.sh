#!/usr/bin/env bash
# scripts/docs deletes nothing in a folder that is not a site made before. dpkg-query is a stub: all packages are there.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
command -v python3 >/dev/null || exit 0  # stage.py needs it
place=$(realpath "$(mktemp -d)")
trap 'rm -rf "$place"' EXIT
mkdir -p "$place/stubs" "$place/mine/pages" "$place/site/html"
printf '#!/bin/sh\necho installed\n' >"$place/stubs/dpkg-query"
chmod +x "$place/stubs/dpkg-query"
export PATH=$place/stubs:$PATH
cd "$place"
echo "site_name: mine" >mine/mkdocs.yml
touch mine/pages/kept.md
# refused COMMAND...: it names the folder `mine`, which stays as it is.
refused() {
  local status=0 said
  said=$("$@" 2>&1) || status=$?
  [ "$status" -ne 0 ] && [[ $said == "docs: $place/mine is not empty, "* ]] && [ -e mine/pages/kept.md ] ||
    { echo "$*: $status, $said"; exit 1; }
}
refused python3 "$root/docs/site/stage.py" mine
refused "$root/scripts/docs" --out mine
# A site made before: its pages are made anew, other files stay.
printf '{"docs_dir": "%s/site/pages"}' "$place" >site/mkdocs.yml
touch site/kept site/html/old.html
if git -C "$root" rev-parse >/dev/null 2>&1; then
  python3 "$root/docs/site/stage.py" site
  [ -e site/kept ] && [ ! -e site/html ] && [ -e site/pages/README.md ] || { echo "a site made before: $(ls site)"; exit 1; }
  python3 "$root/docs/site/stage.py" site
fi
