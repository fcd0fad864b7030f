# make run          build and start the server on the examples
# make test         everything that must hold; what .ci/run runs
# make fuzz         every fuzz target for FUZZTIME, one after another
# make conformance  the cases of other projects, where CASES has them

GO       ?= go
CONFIG   ?= examples/waymark.yaml
CASES    ?= ../shared/cases
ADDR     ?= 127.0.0.1:5300
FUZZTIME ?= 5m

GOFMT := $(shell $(GO) env GOROOT)/bin/gofmt
# A checkout whose history Git will not show still builds, without its revision.
BUILDVCS := $(shell git log -1 --format= >/dev/null 2>&1 && echo auto || echo false)

# Debian puts servers where the path of an ordinary user does not look.
export PATH := $(PATH):/usr/sbin:/sbin

.PHONY: build run test deps fmt vet staticcheck unit alloc narrow cross fuzz conformance conformance-here

build:
	CGO_ENABLED=0 $(GO) build -buildvcs=$(BUILDVCS) -trimpath -o waymark .

run: build
	./waymark serve -c $(CONFIG)

test: deps fmt vet staticcheck unit alloc narrow cross conformance-here
	@echo "== all passed"

# Names what is missing, installs it where it may.
deps:
	@echo "== what the tests need"
	@scripts/deps.sh

fmt:
	@echo "== gofmt"
	@files=$$($(GOFMT) -l .); if [ -n "$$files" ]; then echo "not formatted, run gofmt -w:"; echo "$$files"; exit 1; fi

vet:
	@echo "== go vet"
	@$(GO) vet ./...

staticcheck:
	@echo "== staticcheck"
	@$(GO) tool staticcheck ./...

# With the race detector; the seeds of every fuzz target are among the tests.
unit:
	@echo "== tests, with the race detector"
	@CGO_ENABLED=1 $(GO) test -race -timeout 15m ./...

# The race detector allocates, so what must not allocate is tested without it; and
# it needs cgo, with which privileges cannot be dropped.
alloc:
	@echo "== allocation tests and scripts, without the race detector"
	@CGO_ENABLED=0 $(GO) test -run 'Alloc|TestScripts' ./...

# What depends on the size of a word, on a machine of 32 bits.
narrow:
	@if [ "$$($(GO) env GOHOSTARCH)" = amd64 ]; then \
		echo "== tests on 32 bits"; CGO_ENABLED=0 GOARCH=386 $(GO) test ./internal/listen ./internal/wire ./internal/qlog ./internal/app; \
	fi

cross:
	@for target in linux/amd64 linux/arm64 linux/arm darwin/arm64 darwin/amd64 freebsd/amd64 windows/amd64; do \
		echo "== build for $$target"; \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} GOARM=7 $(GO) build -buildvcs=false ./... || exit 1; \
	done

fuzz:
	@GO="$(GO)" scripts/fuzz.sh $(FUZZTIME)

conformance: build
	@scripts/conformance.sh "$(CASES)" "$(ADDR)"

conformance-here:
	@if [ -d "$(CASES)" ]; then $(MAKE) --no-print-directory conformance; \
	else echo "== conformance: no cases in $(CASES), left out"; fi
