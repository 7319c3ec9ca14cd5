# Needs Go, git and make; with RACE=1 also a C compiler. Tests in a browser also need Chromium and npm, and are skipped without.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

CONTROLLER_GEN := go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

GREMLINS := go run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
MUTATED := api/expansion api/validation sync/deliver/inventory sync/excerpt sync/manifest sync/controllers/kubernetesapplication/placement sync/source/address sync/source/chart sync/render/values webhooks/certificate

# The race detector is the one thing that needs a C compiler.
export CGO_ENABLED := $(if $(RACE),1,0)
# Each of a hundred processes with the race detector would sleep for a second when it ends.
export GORACE ?= atexit_sleep_ms=0

# Who runs what, and so needs which permissions: one ClusterRole each.
HUB := gitsync applicationdefinition sourcecredential valuesschema
DRIVER := kubernetescluster applicationinstallation kubernetesapplication kubernetesapplicationresource
AGENT := application
DATA := executionhook applicationsnapshot statefulapplication applicationrollback
comma := ,
role = $(CONTROLLER_GEN) rbac:roleName=waybill-$(1)$(comma)fileName=$(1).yaml $(2:%=paths=./%/...) output:dir=charts/waybill/files/rbac

# The packages whose tests take longest: what is started last should not be what is waited for.
LONGEST := ./sync/controllers/applicationinstallation ./test/e2e ./webhooks ./test/integration

##@ Use
build: ## Build the programs into bin/ (statically linked)
	@mkdir -p bin
	go build -trimpath -ldflags='-s -w -X main.version=$(VERSION)' -o bin/ ./cmd/...
	@ln -sf waybill bin/kubectl-waybill
demo: ## A hub and two clusters from nothing, and what Waybill does with them; SEED=1 puts a seed between, KEEP=1 leaves them up
	go run ./test/demo

image: ## Build the image without a container engine into dist/image, an OCI layout; PUSH=REPOSITORY:TAG to a registry, BASE=REPOSITORY@DIGEST on a base
	go -C .ci/release run . image --source=../.. --version=$(VERSION) --output=../../dist/image $(if $(BASE),--base=$(BASE)) $(if $(PUSH),--push=$(PUSH)) $(if $(PLATFORMS),--platforms=$(PLATFORMS))
release: ## Pack programs, chart, bills of materials and checksums into dist/release; VERSION=1.2.3, or the tag that is checked out
	go -C .ci/release run . archives --source=../.. --version=$(VERSION) --output=../../dist/release $(if $(PLATFORMS),--platforms=$(PLATFORMS))

##@ Develop
# Not more than four packages at once: many start clusters of half a gigabyte each. Where there is
# a C compiler, kustomize would bring Go's plugins along: with them the linker keeps every function
# of every library and leaves half of the work to the system's linker.
test: controlplane ## Run all tests; RACE=1 with the race detector; PKG=./sync/... some of them; BROWSER=0 without those in a browser
	CGO_ENABLED=0 go build -o bin/ ./test/env/pool
	bin/pool go test -vet=off -p=4 -timeout=35m $(if $(RACE),-race -tags=kustomize_disable_go_plugin_support) $(or $(PKG),$(LONGEST) ./...)
	$(if $(PKG),,go -C .ci/release test -vet=off ./...)
	$(if $(PKG)$(filter 0,$(BROWSER)),,$(MAKE) browser)
browser: controlplane ## Test the dashboard in a headless Chromium; BROWSER=1 fails where that, or npm, is missing
	CGO_ENABLED=0 go -C test/browser test -vet=off -count=1 -timeout=45m
screenshots: controlplane ## Take pictures of each page of the dashboard into dist/screenshots: light, dark, narrow; needs Chromium
	BROWSER=1 SCREENSHOTS=$(CURDIR)/dist/screenshots go -C test/browser test -vet=off -run=Screenshots
e2e: controlplane ## Run the tests that need a real kubelet and real containers; as root, with packages containerd, runc and containernetworking-plugins
	E2E=1 go test -vet=off -count=1 -p=1 -timeout=30m ./test/env/node ./test/e2e/data
fuzz: ## Fuzz every parser of Waybill's own, FUZZTIME each (default: 1m); PKG=sync/deliver/release those below one folder
	@grep -rHoE --include='*_test.go' '^func Fuzz\w+' $(or $(PKG),.) | sed -E 's#^(.*)/[^/]*:func #\1 #' | while read -r dir name; do \
		echo "$$dir $$name"; go test -vet=off -run='^$$' -fuzz="^$$name$$" -fuzztime=$(or $(FUZZTIME),1m) "./$$dir" </dev/null || exit 1; done
# Not for packages whose tests read symbolic links (sync/render/kustomize, sync/render/plain): gremlins does
# not copy those, and takes each test that fails for one that has noticed something.
mutate: ## Change the code of packages whose tests take seconds, and list the changes that no test notices; PKG=sync/render/values one of them
	@copy=$$(mktemp -d) && trap "rm -rf $$copy" EXIT && git ls-files -z --cached --others --exclude-standard | xargs -0 cp -P --parents -t "$$copy" && cd "$$copy" && \
	for package in $(or $(PKG),$(MUTATED)); do echo "$$package" && $(GREMLINS) unleash --timeout-coefficient=30 --output-statuses=lvt "./$$package" || exit 1; done
bench: controlplane ## Measure every figure that has a limit; BENCH=name one of them
	go test -count=1 -timeout=2h -run='^$$' -bench='Waybill/$(BENCH)' -benchtime=$(or $(BENCH_RUNS),5)x ./test/bench
generate: ## Regenerate deepcopy functions, CRDs and ClusterRoles from the code's markers
	rm -f charts/waybill/crds/*.yaml charts/waybill/files/rbac/*.yaml
	$(CONTROLLER_GEN) object paths=./api/...
	$(CONTROLLER_GEN) crd paths=./api/... output:dir=charts/waybill/crds
	$(call role,hub,$(HUB:%=sync/controllers/%))
	$(call role,driver,$(DRIVER:%=sync/controllers/%))
	$(call role,agent,$(AGENT:%=sync/controllers/%))
	$(call role,data,$(DATA:%=sync/controllers/%))
	$(call role,webhook,webhooks)
verify: generate ## Fail when anything generated, formatted or tidied differs from what is committed
	gofmt -l -w $$(git ls-files --cached --others --exclude-standard '*.go')
	for module in . .ci/release test/controlplane test/controlplane/volumes test/controlplane/node test/browser; do (cd $$module && go mod tidy) || exit 1; done
	go vet ./...
	$(GOLANGCI_LINT) run
	@if [ -n "$$(git status --porcelain)" ]; then \
		echo 'Not what is committed:'; git status --short; git --no-pager diff; exit 1; fi
controlplane: ## Build the Kubernetes that everything runs against; minutes the first time, then nothing
	CGO_ENABLED=0 go run ./test/env/build
clean: ## Remove what was built, the control plane for tests included
	rm -rf bin dist
help: ## Show this
	@awk -F ':.*## ' '/^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build demo image release test browser screenshots e2e fuzz mutate bench generate verify controlplane clean help
