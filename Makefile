SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

NODE_OLDEST := 20.19
GO_OLDEST := 1.24
# `make demo KEEP=1` leaves everything running.
export KEEP

.PHONY: help build plugin check format test unit e2e demo bed bench image clean node go

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: node_modules/.installed go ## Bundle the executable into dist/, and compile the CNI plugin into dist/cni/
	@npm run --silent build

plugin: node go ## Compile the CNI plugin only
	@node cni/plugin/build.js

check: node_modules/.installed go ## Compile, lint, check the formatting and the prose
	@npm run --silent check

format: node_modules/.installed ## Format all sources
	@npm run --silent format

test: node_modules/.installed go ## Run all checks and tests; ends with "N passed, N failed"
	@npm run --silent test

unit: node_modules/.installed go ## Run the tests that need no KubeVirt
	@npm run --silent test:unit

e2e: node_modules/.installed go ## Run the e2e tests on a real KubeVirt control plane
	@npm run --silent test:e2e

demo: node_modules/.installed go ## Show a VM that keeps its addresses (KEEP=1: leave everything running)
	@npm run --silent demo

bed: node_modules/.installed go ## Run a KubeVirt control plane with simulated nodes, for kubectl
	@npm run --silent bed

bench: node_modules/.installed go ## Measure speed and memory
	@npm run --silent bench

image: build ## Build the container image holdfast:<version>
	@docker build --tag "holdfast:$$(node -p 'require("./package.json").version')" .

clean: ## Remove all builds and installed packages
	@rm -rf dist node_modules

# The stamp is in node_modules, so that removing the folder removes it too.
node_modules/.installed: package-lock.json package.json | node
	@npm ci --no-audit --no-fund
	@touch $@

node:
	@command -v node >/dev/null || { echo 'Holdfast needs Node.js $(NODE_OLDEST) or newer: https://nodejs.org' >&2; exit 1; }
	@found=$$(node -p process.versions.node); \
	printf '%s\n' "$(NODE_OLDEST)" "$$found" | sort -CV || \
	{ echo "Holdfast needs Node.js $(NODE_OLDEST) or newer; this is $$found" >&2; exit 1; }

go:
	@command -v go >/dev/null || { echo 'Holdfast is built with Go $(GO_OLDEST) or newer: https://go.dev/dl' >&2; exit 1; }
	@found=$$(go env GOVERSION); found=$${found#go}; \
	printf '%s\n' "$(GO_OLDEST)" "$$found" | sort -CV || \
	{ echo "Holdfast is built with Go $(GO_OLDEST) or newer; this is $$found" >&2; exit 1; }
