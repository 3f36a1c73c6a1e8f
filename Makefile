.DEFAULT_GOAL := help
GOBIN := $(CURDIR)/bin
export TESTCONTAINERS_HOST_OVERRIDE ?= 127.0.0.1

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

tools: ## build the pinned linters into bin/
	cd tools && GOBIN=$(GOBIN) go install tool

fmt: tools ## format every file
	$(GOBIN)/gofumpt -w $$(git ls-files '*.go')

check: tools ## the one command before a push: format, vet, lint, tests without Docker
	@test -z "$$($(GOBIN)/gofumpt -l $$(git ls-files '*.go'))" || (echo 'run make fmt'; exit 1)
	go vet ./... && go vet -tags=integration ./...
	$(GOBIN)/golangci-lint run --timeout 10m ./...
	go test ./...

race: ## everything under the race detector
	go test -race -short -count=1 ./...

int: ## tests against a real ZooKeeper in a container
	TESTCONTAINERS_RYUK_DISABLED=true go test -tags=integration -count=1 -p 1 ./...

bench: ## the in-process cluster's throughput
	go test -run '^$$' -bench . -benchtime 5s ./cluster/inproc/...

golden: ## rewrite golden files; look at the diff before committing
	go test ./checker ./report ./cmd/jepsen -update

images: ## build zookeeper:3.9.5 and apache/fluss from package registries, where they cannot be pulled
	bash tools/local-images.sh

ci: ## what the gate runs
	.ci/run

.PHONY: help tools fmt check race int bench golden images ci
