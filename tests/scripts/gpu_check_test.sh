#!/usr/bin/env bash
# scripts/gpu-check on programs that only print what they are called with: lines are in the report as they come, a part
# that fails, crashes, hangs or skips stops no other, and every filter of test cases finds some. `timeout` is a stub that
# notes the seconds and gives five.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export PLACE=$place OUT=$place/brought/back
mkdir -p "$place/bundle/bin" "$place/stubs" "$OUT"

cat >"$place/program" <<'PROGRAM'
#!/usr/bin/env bash
name=$(basename "$0")
echo "$name $*" >>"$PLACE/calls"
case "$name $*" in
  "copying --list-cells") printf 'srnn  a cell\nlstm  another\n'; exit ;;
  "copying --device"* | "adding --device"*)
    while [ "$1" != --out ]; do shift; done
    mkdir -p "$2"
    last=1.5e-1
    case "$2" in */copying-lstm) last=2.0 ;; */adding-srnn) last=nan ;; esac
    printf 'step,a,b,loss\n1,0,0,2.0\n2,0,0,%s\n' "$last" >"$2/metrics.csv"
    exit
    ;;
  "cuda_parity_test --test-case=every cell"*) # waits for the part beside it
    for _ in {1..40}; do
      if grep -q "^ok    loops of real sizes" "$OUT/report.txt"; then touch "$PLACE/seen beside"; break; fi
      sleep 0.1
    done
    ;;
  "cuda_graph_test"*) echo "skipped: no GPU can be used"; exit ;;
  "bench_cells"*steps*) echo "before"; kill -SEGV $$ ;;
  "run_cuda_test --test-case"*) echo "libcufft.so.11 of the CUDA Toolkit is needed and was not opened"; exit 1 ;;
  "python3 -c import jax") sleep 60 ;;
  "test_ops"*) for ((i = 0; i < 2000; ++i)); do echo "a line of many"; done; exit 1 ;;
  "bench_device"*)
    echo "device: a first line"
    sleep 0.5
    grep -q "device: a first line" "$OUT/report.txt" && echo seen >"$PLACE/seen"
    sleep 60
    ;;
esac
echo "$name says something"
PROGRAM
chmod +x "$place/program"
while read -r name; do cp "$place/program" "$place/bundle/bin/$name"; done < <(
  grep -oE 'bin/[a-z_]+' "$root/scripts/gpu-check" | sed 's|bin/||' | sort -u
  printf '%s\n' adding linalg_test linalg_extremes_test spectral_test fourier_test random_test cuda_plan_test \
    cuda_functors_test cuda_matrices_test run_cuda_test shapes_test losses_test rotation_test cells_golden_test model_test optimizer_test
)
cat >"$place/stubs/timeout" <<'STUB'
#!/usr/bin/env bash
echo "$3 ${*:4}" >>"$PLACE/budgets"
exec /usr/bin/timeout -k 1 5 "${@:4}"
STUB
cp "$place/program" "$place/stubs/ncu"
cp "$place/program" "$place/stubs/compute-sanitizer"
cp "$place/program" "$place/stubs/python3"
# Two toolkits that the loader does not know.
printf '#!/bin/sh\n' >"$place/stubs/ldconfig"
printf '#!/bin/sh\nprintf "/%%s/libcublas.so.%%s\\n" toolkit12 12 toolkit13 13\n' >"$place/stubs/find"
echo libcublas.so.12 >"$place/bundle/cuda-libraries"
printf '#!/bin/sh\necho "A GPU of paper, 1.0, 1 MiB"\n' >"$place/stubs/nvidia-smi"
chmod +x "$place/stubs/"*
export PATH=$place/stubs:$PATH

failed=0
wrong() {
  echo "$*" >&2
  failed=1
}
report=$OUT/report.txt
# in_report PATTERN: a line of the report.
in_report() { grep -qaE -- "$1" "$report" || wrong "not in the report: $1"; }

code=0
"$root/scripts/gpu-check" --bundle "$place/bundle" --out "$report" >"$place/words" 2>&1 || code=$?
[ "$code" -eq 1 ] || wrong "exit code $code, expected 1"
[ -e "$place/seen" ] || wrong "the first line of bench_device was not in the report while it ran"
[ -e "$place/seen beside" ] || wrong "a part that had ended was not in the report while another ran beside it"
in_report '^A GPU of paper'
in_report '^LD_LIBRARY_PATH=/toolkit12$'
in_report '^FAIL  libraries: code 1'
in_report '^      not found: libcufft.so.11'
in_report '^device: a first line'
in_report '^TIME  bench_device: stopped after 50 s'
in_report '^FAIL  bench_cells, loops step by step: code 139'
in_report '^FAIL  test_ops: code 1'
in_report '^SKIP  steps as graphs: no GPU can be used'
in_report '^ok    copying with srnn'
in_report '^      2.0 -> 1.5e-1'
in_report '^FAIL  copying with lstm: the loss does not fall: 2.0 -> 2.0'
in_report '^FAIL  adding with srnn: the loss does not fall: 2.0 -> nan'
in_report '^ok    LSTM and GRU beside cuDNN'
in_report '^ok    where the time of srnn:100x1024 goes'
in_report '^6 parts failed; '
[ "$(wc -c <"$report")" -lt 60000 ] || wrong "the report of a part that prints much is not cut"
# The questions that only a GPU answers come first, and nothing is left out.
order=$(grep -aE '^(ok|FAIL|TIME|SKIP|LATE)' "$report" | sed 's/^[A-Z]* *//; s/^ok *//; s/[:(].*//; s/ *$//')
wanted="a first sum|libraries|loops of real sizes|cells|bench_barriers|bench_device|bench_loops"
[ "$(head -n 7 <<<"$order" | paste -sd '|')" = "$wanted" ] || wrong "the first parts are: $(head -n 7 <<<"$order" | paste -sd '|')"
for part in cells cuda_plan_test bench_ops shapes_test optimizer_test scan_test; do
  grep -qx "$part" <<<"$order" || wrong "no part $part"
done
while read -r seconds _; do
  [ "$seconds" -le 120 ] || wrong "a part has $seconds s"
done <"$place/budgets"

sed -i '/run_cuda_test --test-case/d' "$place/bundle/bin/run_cuda_test"
for mode in --sanitize --peers; do
  "$root/scripts/gpu-check" --bundle "$place/bundle" --out "$report" $mode >"$place/words" 2>&1 || wrong "$mode: exit code $?"
  in_report '^0 parts failed; '
done
in_report '^SKIP  some cells beside JAX: python3 cannot import it'
grep -q 'bench-peers.*--cells lstm,gru --shapes 1024x16x128:frames' "$place/calls" || wrong "no peers were asked for"
grep -q '^compute-sanitizer --tool racecheck' "$place/calls" || wrong "no sanitizer was asked for"

# A GPU that cannot be used ends it at once, and so does a sanitizer that does not work.
cp "$place/program" "$place/kept"
printf '#!/bin/sh\necho "skipped: the driver is too old"\n' >"$place/bundle/bin/tape_test"
code=0
"$root/scripts/gpu-check" --bundle "$place/bundle" --out "$report" >"$place/words" 2>&1 || code=$?
[ "$code" -eq 1 ] || wrong "without a GPU: exit code $code"
in_report '^SKIP  a first sum: the driver is too old'
in_report '^FAIL  no GPU can be used here'
grep -qE 'bench_|cuda_parity' "$report" && wrong "without a GPU more was tried"
cp "$place/kept" "$place/bundle/bin/tape_test"
printf '#!/bin/sh\nexit 3\n' >"$place/stubs/compute-sanitizer"
code=0
"$root/scripts/gpu-check" --bundle "$place/bundle" --out "$report" --sanitize >"$place/words" 2>&1 || code=$?
[ "$code" -eq 1 ] || wrong "a sanitizer that fails: exit code $code"
in_report '^FAIL  compute-sanitizer does not work here'

# --limit is the time of all parts together, and the kernels that were compiled are next to the report.
mkdir -p "$place/bundle/.cache" && touch "$place/bundle/.cache/kernel"
"$root/scripts/gpu-check" --bundle "$place/bundle" --out "$report" --peers --limit 1 >"$place/words" 2>&1 && wrong "nothing was late"
in_report '^LATE '
tar -tzf "$OUT/kernels.tar.gz" | grep '^.cache/kernel$' >/dev/null || wrong "no kernels next to the report"
code=0
"$root/scripts/gpu-check" --bundle "$place/bundle" --limit soon >"$place/words" 2>&1 || code=$?
[ "$code" -eq 2 ] || wrong "--limit soon: exit code $code"
code=0
"$root/scripts/gpu-check" --bundle "$place/bundle" --out /dev/null/report >"$place/words" 2>&1 || code=$?
[ "$code" -eq 2 ] || wrong "--out /dev/null/report: exit code $code"

# scripts/bundle builds what is called.
built=$(sed -n '/^tasks="/,/^benches="/p' "$root/scripts/bundle" | tr -s '"=' ' ' | tr ' ' '\n')
while read -r name; do
  case $name in ncu | python3 | compute-sanitizer) continue ;; esac
  grep -qx "$name" <<<"$built" || wrong "scripts/bundle does not build $name"
done < <(cut -d' ' -f1 "$place/calls" | sort -u)

# scripts/bundle without MPI, which has no library of Reel's: with stubs of cmake and nvcc, in a tree of its own.
tree=$place/tree
mkdir -p "$tree/scripts" "$tree/presets" "$tree/tests/golden" "$tree/engine/device" "$tree/backends/cuda" "$tree/docs" \
  "$tree/build/bin" "$tree/build/lib"
cp "$root/scripts/bundle" "$tree/scripts/"
touch "$tree/engine/device/backend.h" "$tree/docs/cuda.md"
cp "$(command -v ls)" "$tree/build/bin/copying"
rm "$place/stubs/find"
echo "CMAKE_CUDA_COMPILER:FILEPATH=$place/stubs/nvcc" >"$tree/build/CMakeCache.txt"
printf '#!/bin/sh\n' >"$place/stubs/cmake"
printf '#!/bin/sh\nsed "s/CU[A-Z]*_VER_MAJOR/11/; s/CUDA_VERSION/12040/"\n' >"$place/stubs/nvcc"
chmod +x "$place/stubs/"*
if [ -x /usr/bin/xz ]; then
  BUILD=$tree/build "$tree/scripts/bundle" >"$place/words" 2>&1 || wrong "scripts/bundle without MPI: $(tail -n 3 "$place/words")"
  [ "$(paste -sd ' ' "$tree/bundle/cuda-libraries")" = "libcublas.so.11 libcufft.so.11 libcusolver.so.11 libnvrtc.so.12" ] ||
    wrong "CUDA's libraries are: $(cat "$tree/bundle/cuda-libraries")"
  [ ! -e "$tree/bundle/bin" ] || wrong "a bundle's programs are not packed"
  "$root/scripts/gpu-check" --bundle "$tree/bundle" --out "$report" --peers --limit 1 >"$place/words" 2>&1 || true
  [ -x "$tree/bundle/bin/copying" ] || wrong "a bundle's programs are not unpacked: $(cat "$place/words")"
fi

# ncu looks at the kernels of loops, and at no others.
kernel=$(grep -oE -- '--kernel-name [a-z]+' "$root/scripts/gpu-check" | cut -d' ' -f2)
[ "$(cd "$root" && grep -lr "name = \"$kernel\"" backends/cuda/codegen)" = backends/cuda/codegen/loop_source.h ] ||
  wrong "ncu is to look at \"$kernel\", which is not the kernel of loops alone"

# Every filter names test cases that are there.
while read -r pattern; do
  grep -rqF "TEST_CASE(\"$pattern" "$root/tests" || wrong "no test case begins with \"$pattern\""
done < <(grep -oE -- '--test-case(-exclude)?="[^"$]+"' "$root/scripts/gpu-check" | sed 's/.*="//; s/"$//' | tr ',' '\n' | sed 's/\*$//')
exit $failed
