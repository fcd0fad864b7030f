#!/bin/sh
# Looks for the programs that the tests need and installs Debian packages for
# those that are missing, where it may: as root, with apt-get. Elsewhere it names
# them. Without Go or a C compiler (for the race detector) nothing can be tested,
# so their absence is an error; tests that need another server to compare with
# are skipped without it, unless --strict is given.
set -eu

strict=${1:-}

# program:package[:required]
needs='
gcc:gcc:required
dig:bind9-dnsutils
dnssec-signzone:bind9-utils
named-checkzone:bind9-utils
kdig:knot-dnsutils
knotd:knot
nsd:nsd
nsd-checkzone:nsd
dnsperf:dnsperf
ip:iproute2
python3:python3
node:nodejs
npm:npm
'

# Debian puts servers where the path of an ordinary user does not look.
PATH=$PATH:/usr/sbin:/sbin

if ! command -v go >/dev/null; then
	echo "missing: go. Install Go (https://go.dev/dl/), the release that go.mod names or newer." >&2
	exit 1
fi

# Sets packages (to install) and fatal (programs without which nothing goes).
look() {
	packages= fatal=
	for need in $needs; do
		program=${need%%:*} rest=${need#*:}
		package=${rest%%:*}
		if command -v "$program" >/dev/null; then continue; fi
		case " $packages " in *" $package "*) ;; *) packages="$packages $package" ;; esac
		case $rest in *:required) fatal="$fatal $program" ;; esac
	done
	# The compiler without the C library's headers is no use.
	if [ ! -e /usr/include/stdlib.h ] && command -v apt-get >/dev/null; then
		packages="$packages libc6-dev" fatal="$fatal libc6-dev"
	fi
}

# Installs packages but lets none of them start a server on this machine.
install() {
	policy=/usr/sbin/policy-rc.d
	if [ ! -e $policy ]; then
		printf '#!/bin/sh\nexit 101\n' >$policy
		chmod 755 $policy
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q </dev/null
	# Word by word on purpose.
	# shellcheck disable=SC2086
	apt-get install -q -y --no-install-recommends $packages </dev/null
}

# A Parquet reader of somebody else, for a test that is skipped without it.
reader() {
	foreign=$(dirname "$0")/../internal/qlog/testdata/foreign
	if [ -d "$foreign/node_modules" ] || ! command -v npm >/dev/null; then return; fi
	(cd "$foreign" && npm ci --no-audit --no-fund --silent >/dev/null 2>&1) ||
		echo "npm ci failed in internal/qlog/testdata/foreign: the test with a foreign Parquet reader is skipped" >&2
}

look
if [ -n "$packages" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing:$packages"
	install || echo "installing failed:$packages" >&2
	look
fi
reader
if [ -z "$packages" ]; then
	echo "all there"
	exit 0
fi
echo "missing; on Debian: apt-get install$packages" >&2
if [ -n "$fatal" ]; then
	echo "nothing can be tested without:$fatal" >&2
	exit 1
fi
if [ "$strict" = --strict ]; then exit 1; fi
echo "tests that compare with these are skipped" >&2
