# Turns a chapter into a C++ program, so that every code block is compiled, run, and held to the output shown below it.
#
#   awk -f extract.awk -v name=docs/01-tensor.md -v out=01-tensor.cpp docs/01-tensor.md
#
#   ```cpp         into main(), in order, all in one scope
#   ```cpp scope   into main(), in a scope of its own
#   ```cpp global  before main(), at namespace scope
#   ```cpp show    shown only
#   ```text        directly after a block of main() (blank lines between): what that block prints, to the letter
#
# A block without a ```text must print nothing. -v include=FILE replaces docs/prelude.h. Other blocks are for the reader.

function die(message) {
  printf "%s:%d: %s\n", name, NR, message > "/dev/stderr"
  failed = 1
  exit 1
}
function body(line) { main_lines[++mains] = line }
function global(line) { global_lines[++globals] = line }
function quoted(line,    i, c, text) {
  for (i = 1; i <= length(line); ++i) {
    c = substr(line, i, 1)
    text = text (c == "\\" || c == "\"" ? "\\" : "") c
  }
  return "        \"" text "\\n\""
}
# The last block of main() printed nothing, as no ```text followed it.
function settle() {
  if (waiting) body("    expect(\"\", \"" name ":" waiting "\");")
  waiting = 0
}

BEGIN { kind = "" }

kind == "" && /^```/ {
  opened = NR
  info = substr($0, 4)
  sub(/[ \t]+$/, "", info)
  kind = "other"
  if (info == "text" && waiting) {
    kind = "text"
    body("    expect(")
    body("        \"\"")
  } else if (info ~ /^cpp/) {
    settle()
    if (info == "cpp") kind = "main"
    else if (info == "cpp scope") kind = "scope"
    else if (info == "cpp global") kind = "global"
    else if (info != "cpp show") die("a block is cpp, cpp scope, cpp global or cpp show, not \"" info "\"")
    if (kind == "scope") body("    {")
    if (kind == "main" || kind == "scope") body("#line " NR + 1 " \"" name "\"")
    if (kind == "global") global("#line " NR + 1 " \"" name "\"")
  } else settle()
  next
}
kind != "" && /^```[ \t]*$/ {
  if (kind == "scope") body("    }")
  if (kind == "main" || kind == "scope") waiting = opened
  if (kind == "text") {
    body("        , \"" name ":" opened "\");")
    waiting = 0
  }
  kind = ""
  next
}
kind == "main" || kind == "scope" { body($0) }
kind == "global" { global($0) }
kind == "text" { body(quoted($0)) }
kind == "" && !/^[ \t]*$/ { settle() }

END {
  if (failed) exit 1
  if (kind != "") {
    NR = opened
    die("this block has no end")
  }
  settle()
  print "// Made from " name " by docs/extract.awk." > out
  print "#include \"" (include == "" ? "docs/prelude.h" : include) "\"" > out
  for (i = 1; i <= globals; ++i) print global_lines[i] > out
  print "int main() {" > out
  print "  return run_chapter([] {" > out
  for (i = 1; i <= mains; ++i) print main_lines[i] > out
  print "  });" > out
  print "}" > out
}
