# One set of build flags for everything but the race detector, which needs cgo:
# another set would build all of it again.
export CGO_ENABLED := 0
# A checkout that git declines to read (another user's) has no version to stamp.
export GOFLAGS := $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false) $(GOFLAGS)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Each of these can be given: make run ARGS="--data /tmp/d", make fuzz FUZZTIME=5m
ARGS ?=
FUZZTIME ?= 30s
PKG ?= ./...
GOLANGCI := go tool -modfile=tools/go.mod golangci-lint
# What runs goroutines, and what they run. The others are left out for time.
RACE := $(addprefix ./internal/,app admin audit bisect broker carrier deadletter embedded event fault health intake meter \
	offset pg pipeline run supervisor) ./plugins/...

.PHONY: help
help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "Tests and bench start the Kafka and the PostgreSQL they need and end them; to use running ones set"
	@echo "APPLIANCE_TEST_KAFKA (bootstrap servers) and APPLIANCE_TEST_POSTGRES (URL of a superuser's database)."
	@echo "Kafka takes Java 17 and, the first time, Maven. PostgreSQL is this machine's, or else fetched."

.PHONY: run
run: build ## Run everything on this machine, embedded; data in .appliance (ARGS="--data DIR")
	exec bin/appliance run --dev $(ARGS)

.PHONY: build
build: ## Build bin/appliance
	go build -o bin/appliance ./cmd/appliance

# `with` starts the services, runs a command with their addresses, ends them.
.PHONY: bin/with
bin/with:
	@go build -o bin/with ./internal/testservices/with

# Python's clients, which write records that no Go client wrote. Without Python
# the tests that want them say so, and fail only in CI.
export APPLIANCE_TEST_PYTHON ?= $(CURDIR)/.cache/venv/bin/python
.cache/venv/installed: tools/pyproduce/requirements.txt
	@{ python3 -m venv .cache/venv && .cache/venv/bin/python -m pip install --quiet --disable-pip-version-check -r $< && touch $@; } \
		|| echo "no Python packages: install python3-venv, or set APPLIANCE_TEST_PYTHON to an interpreter that has them"

.PHONY: test
test: bin/with .cache/venv/installed ## Run all tests on a real Kafka and a real PostgreSQL (PKG=./internal/pg)
	bin/with go test $(PKG) -count=1 -timeout 20m $(ARGS)

.PHONY: race
race: bin/with ## Run the concurrent packages' tests under the race detector (needs gcc)
	CGO_ENABLED=1 bin/with go test -race -count=1 -timeout 14m $(RACE)

.PHONY: test-kill
test-kill: build bin/with ## Kill appliance, Kafka and PostgreSQL in mid-load and count every record (about 30 minutes)
	bin/with -durable go test ./internal/killtest -count=1 -v -run . -timeout 60m -args -full $(ARGS)

.PHONY: bench
bench: build bin/with ## Measure persist against COPY on the same machine; prints one JSON object
	@bin/with -durable sh -c 'KAFKA_BOOTSTRAP_SERVERS="$${KAFKA_BOOTSTRAP_SERVERS:-$$APPLIANCE_TEST_KAFKA}" \
		DATABASE_URL="$${DATABASE_URL:-$$APPLIANCE_TEST_POSTGRES}" exec bin/appliance bench persist --json $(ARGS)'

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (30s)
	@for dir in $$(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do \
		for target in $$(go test -list '^Fuzz' ./$$dir | grep '^Fuzz'); do \
			echo "$$dir $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) ./$$dir; \
		done; \
	done

.PHONY: lint
lint: ## Check style and the arrows between rooms (golangci-lint, pinned in tools/go.mod)
	$(GOLANGCI) run

.PHONY: fmt
fmt: ## Format the code as lint wants it
	$(GOLANGCI) fmt

.PHONY: verify
verify: ## Check what is generated or written down elsewhere: formatting, go.mod, docs, deploy
	@test -z "$$(gofmt -l cmd internal plugins pipelines migrations policies schema deploy)" || \
		{ echo "not gofmt'ed:"; gofmt -l cmd internal plugins pipelines migrations policies schema deploy; exit 1; }
	go vet ./...
	go mod tidy -diff
	go mod verify >/dev/null
	cd tools && go mod tidy -diff
	go generate ./...
	@git diff --exit-code --stat -- docs schema || { echo "generated files are not current: commit them"; exit 1; }
	bash -n .ci/run tools/kafka
	go test -count=1 ./deploy

.PHONY: ci
ci: ## Do what CI does: install what a bare Debian lacks, then test, lint, race, verify
	.ci/run

.PHONY: clean
clean: ## Remove what was built; the data in .appliance stay
	rm -rf bin .cache
