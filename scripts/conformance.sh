#!/bin/sh
# Runs the cases of other projects against ./waymark and compares with the bars:
# every case at level core, 99.85 % at level ferret, every endless DNAME chain
# sane, and 99.1 % of the verdicts on ill-formed zones.
# usage: scripts/conformance.sh CASES ADDRESS:PORT
set -eu

cases=$1 addr=$2
runner=$cases/../tools/cases.py
waymark=$(pwd)/waymark

for need in "$runner" "$waymark"; do
	if [ ! -e "$need" ]; then
		echo "conformance: $need is missing" >&2
		exit 1
	fi
done
if ! command -v python3 >/dev/null; then
	echo "conformance: python3 is missing" >&2
	exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out

# judge PROGRAM: prints what failed; an empty table fails too.
judge() {
	if ! awk "$1" "$out"; then
		echo "conformance: below the bar" >&2
		exit 1
	fi
}

echo "== conformance: zones and queries"
# The runner's exit code counts single failures; the bar is ours.
python3 "$runner" --data "$cases/zones-valid.tar.gz" --modern "$cases/modern-expected.json.gz" \
	--jobs 2 --addr "$addr" --workdir "$scratch" \
	--start "exec '$waymark' serve --listen udp://{addr} --listen tcp://{addr} --zone {origin}={zone}" >"$out" </dev/null || true
cat "$out"
judge '
$1 == "split" && $3 != $2 { print "split: not every endless chain is sane"; bad = 1 }
$1 == "all" {
	seen = 1
	if ($3 != $2) { print "core: " $3 " of " $2 ", all must hold"; bad = 1 }
	if ($5 / $2 < 0.9985) { print "ferret: " $5 " of " $2 ", 99.85 % must hold"; bad = 1 }
}
END { exit bad || !seen }'

echo "== conformance: ill-formed zones"
python3 "$runner" --invalid-data "$cases/zones-invalid.tar.gz" --workdir "$scratch" \
	--check-cmd "'$waymark' zone check --origin {origin} {zone}" >"$out" </dev/null || true
cat "$out"
judge '
$1 == "TOTAL" {
	seen = 1
	split($3, n, "/")
	if (n[1] / n[2] < 0.991) { print "verdicts: " $3 ", 99.1 % must agree"; bad = 1 }
}
END { exit bad || !seen }'
echo "== conformance: passed"
