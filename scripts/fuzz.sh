#!/bin/sh
# Runs every fuzz target for the time given, one after another, and stops at the
# first finding. usage: scripts/fuzz.sh 5m
set -eu

time=${1:-5m}
go=${GO:-go}

count=0
for file in $(grep -rl --include='*_test.go' '^func Fuzz' . | sort); do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "== $target in $(dirname "$file") for $time"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 20x "$(dirname "$file")"
		count=$((count + 1))
	done
done
echo "== $count targets, no finding"
