SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

NODE_OLDEST := 20.19
GO_OLDEST := 1.24
# `make e2e NODES=real`: all stories on real nodes, or those of FILE=. MULTUS=thick: with Multus' daemon; RUNTIME=containerd-2: with that.
# NODES=guests: those with guests.
export NODES MULTUS RUNTIME
# `make demo KEEP=1` leaves everything running.
export KEEP
# `make unit FILE=kube/workqueue.test.ts`
export FILE
# Of `make image`. BUILD_ARGS may set the base images, for example --build-arg GO_IMAGE=registry.example.com/golang:1.27.4.
IMAGE ?= holdfast
VERSION ?= $(shell sed -n 's/^  "version": "\(.*\)",/\1/p' package.json)
OUTPUT ?= type=docker
# Images of one commit have the same timestamps.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
# `make chaos MINUTES=10 SEED=1 OUT=folder`
export MINUTES SEED
# `make conformance IPAM_EXTENSIONS_SRC=folder`
export IPAM_EXTENSIONS_SRC
# `make release VERSION=1.2.3`: docs/how-to/release.md.
export IMAGE WITH_IMAGE REPOSITORY PLUGIN_PLATFORMS DRAFT OUT
# These two do not take the version from package.json: it has to be given.
version release: export VERSION := $(if $(filter file,$(origin VERSION)),,$(VERSION))
# `make e2e KUBERNETES=1.36 KUBEVIRT=1.7` runs these versions: bed/build/versions.ts.
ifneq ($(KUBERNETES),)
export BED_KUBERNETES := $(KUBERNETES)
endif
ifneq ($(KUBEVIRT),)
export BED_KUBEVIRT := $(KUBEVIRT)
endif

.PHONY: help build plugin check format test unit api watch e2e matrix kind demo ui pictures docs publish-docs chaos dashboard conformance conformance-dhcp bed bench fuzz image version release publish announce clean node go

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: node_modules/.installed go ## Bundle the executable, and compile the CNI plugin and holdfast-packets, into dist/
	@npm run --silent build

plugin: node go ## Compile the CNI plugin only
	@node cni/plugin/build.js

check: node_modules/.installed go ## Compile, lint, check the formatting and the prose
	@npm run --silent check

format: node_modules/.installed ## Format all sources
	@npm run --silent format

test: node_modules/.installed go ## Run all checks and tests; ends with "N passed, N failed"
	@npm run --silent test

unit: node_modules/.installed go ## Run the tests that need no API server (FILE=: only these files)
	@npm run --silent test:unit

api: node_modules/.installed go ## Run the tests that need a kube-apiserver but no KubeVirt (FILE=)
	@npm run --silent test:api

watch: node_modules/.installed ## Run the tests in FILE= again whenever a file changes that they import
	@node --watch --import=tsx node_modules/mocha/bin/mocha.js --timeout=60000 $(or $(FILE),$(error make watch needs FILE=))

e2e: node_modules/.installed go ## Run the e2e tests on a real KubeVirt control plane (FILE=)
	@npm run --silent test:e2e

matrix: node_modules/.installed go ## Run the e2e tests with each pair of versions of Kubernetes and KubeVirt
	@npm run --silent test:matrix

kind: node_modules/.installed go ## Create a kind cluster with KubeVirt and Holdfast, for e2e tests
	@bed/kind/up.sh

demo: node_modules/.installed go ## Show a VM that keeps its addresses (KEEP=1: leave everything running; NODES=simulated: without kubelet)
	@npm run --silent demo

ui: node_modules/.installed go ## Open the web page on a control plane with some VMs
	@npm run --silent ui

pictures: node_modules/.installed go ## Take the pictures of the web page in the documents again (root or an installed browser)
	@UI_PICTURES=1 FILE=e2e/cli/ui.e2e.ts npm run --silent test:e2e

docs: node ## Build the documents as a site with a search, in site/dist/site/; a dead link fails it
	@rm -rf site/dist && mkdir site/dist && cp -r docs site/dist/source
	@cd site && npm ci --no-fund --no-audit && npm run --silent build

publish-docs: ## Add the built documents of DOCS_VERSION to the checkout of branch gh-pages in pages/, and push it
	@site/publish.sh site/dist/site pages "$$DOCS_VERSION"

chaos: node_modules/.installed go ## Kill, stop and cut off processes at random under load (MINUTES=, SEED=, OUT=folder)
	@npm run --silent chaos

dashboard: node_modules/.installed go ## Query everything on the Grafana dashboard from a Prometheus that scrapes a bed under load
	@npx --no-install tsx e2e/dashboard/main.ts

conformance: node_modules/.installed go ## Run kubevirt/ipam-extensions beside Holdfast for an hour, and its own tests (IPAM_EXTENSIONS_SRC=folder)
	@npx --no-install tsx e2e/conformance/main.ts
	@CHURN_MINUTES="$${CHURN_MINUTES:-60}" npx --no-install mocha --import=tsx --timeout 120000 --require ./bed/story/hooks.ts \
	--grep 'with kubevirt/ipam-extensions|with a recording' e2e/peers/take-over.e2e.ts

conformance-dhcp: node_modules/.installed go ## Ask holdfast-packets, Kea and dnsmasq the same, and compare their answers with the RFCs (Linux, root, Debian)
	@npx --no-install tsx e2e/conformance/dhcp.ts

bed: node_modules/.installed go ## Run a KubeVirt control plane with simulated nodes, for kubectl (NODES=real: with kubelet and Holdfast)
	@npm run --silent bed

bench: node_modules/.installed go ## Measure speed and memory
	@npm run --silent bench

fuzz: go ## Fuzz what holdfast-packets parses, each target for FUZZTIME (20s)
	@cd guest/packets && for target in FuzzDHCP4 FuzzDHCP6 FuzzNDP FuzzSession; do \
	go test -run '^$$' -fuzz "^$$target$$" -fuzztime "$${FUZZTIME:-20s}" -fuzzminimizetime 1x .; done

image: ## Build the container image (PLATFORMS=linux/amd64,linux/arm64 OUTPUT=type=registry: for several)
	@docker buildx version >/dev/null 2>&1 && docker info >/dev/null 2>&1 || \
	{ echo 'make image needs a running Docker with buildx (https://docs.docker.com/build/), or build the Dockerfile with another BuildKit client' >&2; exit 1; }
	@docker buildx build $(if $(PLATFORMS),--platform '$(PLATFORMS)') --output '$(OUTPUT)' --tag '$(IMAGE):$(VERSION)' \
	--build-arg VERSION='$(VERSION)' --build-arg REVISION="$$(git rev-parse HEAD)" \
	--build-arg CREATED="$$(date --utc --date "@$$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" $(BUILD_ARGS) .

version: node_modules/.installed ## Set the version everywhere, and close its section of the changelog (VERSION=1.2.3)
	@npx --no-install tsx release/prepare.ts

release: node_modules/.installed go ## Build the release VERSION=1.2.3 into out/ (DRAFT=1: a tree that is not ready)
	@npx --no-install tsx release/main.ts

publish: ## Push and sign the release in out/: only the release workflow does this
	@release/publish.sh

announce: ## Create the GitHub release of out/: only the release workflow does this
	@release/announce.sh

clean: ## Remove all builds and installed packages
	@rm -rf dist out out.partial node_modules

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
