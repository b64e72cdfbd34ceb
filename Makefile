# Thin targets: what they do is in the packages, in images/build.sh and in test/.
export GOTOOLCHAIN := auto
export GOFLAGS := -trimpath -buildvcs=false
GO ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
PACKAGES := ./...
# Test programs without debug information link in two thirds of the time, which is most of `make test` after a change.
TESTFLAGS := -ldflags "-s -w"
STATE := _demo
VMS := auto
# yes: an image holds the container images of the example add-ons (docs/addons.md).
EXAMPLES := no
# A folder of what a site adds to an image: images/README.md.
EXTRA := $(QUORATE_EXTRA)
# The architecture of masters: arm64 has its programs in bin/arm64/ and its image in bin/image-arm64/, and everything else here is of this machine.
ARCH ?= amd64
export ARCH
ifeq ($(filter amd64 arm64,$(ARCH)),)
$(error ARCH is '$(ARCH)': want amd64 or arm64)
endif
OTHERS := $(filter-out deps guest build kubernetes coredns etcd image install image-test,$(MAKECMDGOALS))
ifneq ($(if $(filter arm64,$(ARCH)),$(OTHERS)),)
$(error ARCH=arm64 is for build, kubernetes, coredns, etcd, image, install and image-test, not for $(OTHERS))
endif
BIN := bin$(if $(filter arm64,$(ARCH)),/arm64)
IMAGE := bin/image$(if $(filter arm64,$(ARCH)),-arm64)
GOFOR := CGO_ENABLED=0 $(if $(filter arm64,$(ARCH)),GOARCH=arm64 )$(GO)
# What of ./test is about boots, disks, processes and members; QUORATE_VM=systemd runs any other on systemd VMs too. Cases
# 18 and 19 have five and seven VMs, for which a machine has too few inotify instances unless it is told otherwise.
SYSTEMD_CASES := -run 'TestMastersOfTheImage|TestThreeReplicas|TestCase[012]|TestCaseThe(DataDisk|Agent|Kubelet)|TestAHostError|TestAWorkersPodsGoOn' -skip 'TestCase1[89]'
# The packages with tests that -short leaves out, or makes shorter; the longest begins first.
CASES := ./test ./addons ./cmd/quorate ./controlplane ./etcdmember/acts ./etcdmember/ringtest ./etcdmember/table ./fleet ./internal/localgce

.DEFAULT_GOAL := help

help: ## Say what the targets do
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: demo-check deps build kubernetes etcd ## Three real masters on this machine (root), left running; VMS=systemd: from a baked image, with pods
	@QUORATE_DEMO_VMS=$(VMS) test/demo.sh up $(STATE)

demo-check:
	@test "$(VMS)" != systemd || test -s bin/image/root.tar || $(MAKE) image
	@QUORATE_DEMO_VMS=$(VMS) test/demo.sh check $(STATE)

demo-watch: ## Write a ConfigMap of the demo and read it back, on and on, while you shoot masters; FOR=10: for 10 s
	@test/demo.sh watch $(STATE) $(FOR)

demo-down: ## Remove every trace of the demo
	@test/demo.sh down $(STATE)

test: deps build kubernetes etcd etcd-former ## All tests but most cases of masters; those that need root are skipped without it
	$(GO) test $(TESTFLAGS) -short -timeout 20m ./test ./cmd/quorate $(PACKAGES)

cases: build kubernetes etcd etcd-former ## The cases of masters: losses, disks, networks, clocks, restores (root, 40 minutes)
	$(GO) test $(TESTFLAGS) -timeout 55m $(CASES)

check: lint test ## What must pass before a commit

deps: ## Install what this machine lacks (Debian or Ubuntu packages; needs root only if something is missing)
	@images/deps.sh

build: ## quorate, localgce and the program of pods' sandboxes, into bin/
	@mkdir -p $(BIN)
	$(GOFOR) build -ldflags "-s -w" -o $(BIN)/ ./cmd/quorate ./cmd/localgce ./images/pause

man: build ## The manual pages of quorate's commands, into bin/man/
	bin/quorate man bin/man

kubernetes: ## The real Kubernetes programs from their source modules, cached by pin
	@images/build.sh kubernetes $(BIN)

coredns: ## CoreDNS with the plugins of a cluster's DNS, from its source module, cached by pin
	@images/build.sh coredns $(BIN)

etcd: ## etcd's own tools from their source modules, cached by pin
	@images/build.sh etcd $(BIN)

etcd-former: ## etcd of the minor version before ours, for the tests of what is refused, in bin/former/
	@images/build.sh etcd-former bin/former

# What goes onto masters bears its commit; as root, too, who bakes in a repository of another user.
image install: export GOFLAGS := -trimpath -buildvcs=auto
image install: export GIT_CONFIG_COUNT := 1
image install: export GIT_CONFIG_KEY_0 := safe.directory
image install: export GIT_CONFIG_VALUE_0 := *

image: build kubernetes etcd $(if $(filter yes,$(EXAMPLES)),coredns) ## A master's disk image for GCE, with its SBOM, into bin/image/ (root; 3 minutes); ARCH=arm64: for arm64; EXAMPLES=yes: and the example add-ons; EXTRA=FOLDER: and what your site adds
	CGO_ENABLED=0 $(GO) build -ldflags "-s -w" -o bin/ ./images/describe ./images/addextra
	@QUORATE_EXAMPLES=$(EXAMPLES) QUORATE_EXTRA="$(EXTRA)" images/bake.sh $(IMAGE)

install: build kubernetes etcd $(if $(filter yes,$(EXAMPLES)),coredns) ## Make this machine, a Debian 12, a master from its next boot on: what an image has, without its kernel (root); EXTRA as for image
	$(GOFOR) build -ldflags "-s -w" -o $(BIN)/ ./images/addextra
	@QUORATE_EXAMPLES=$(EXAMPLES) QUORATE_EXTRA="$(EXTRA)" images/install.sh $(BIN)

# The test's own programs are of this machine.
image-test: image guest $(if $(filter arm64,$(ARCH)),of-this-machine) ## The baked image: baked again, booted to a Ready Node in an emulated machine, against install.sh (root; half an hour)
	QUORATE_IMAGE=$(CURDIR)/$(IMAGE) QUORATE_EXTRA=$(abspath $(EXTRA)) $(GO) test -count 1 -timeout $(if $(filter arm64,$(ARCH)),240m,120m) -v ./test/image

of-this-machine:
	@$(MAKE) ARCH=amd64 build kubernetes

cases-systemd: image ## The VMs that boot the baked image, the cases of masters in them, a short chaos, and the demo (root, 67 minutes)
	QUORATE_IMAGE=$(CURDIR)/bin/image $(GO) test -count 1 -timeout 10m -v -run Systemd ./internal/localgce
	QUORATE_IMAGE=$(CURDIR)/bin/image QUORATE_VM=systemd $(GO) test -count 1 -timeout 100m -v $(SYSTEMD_CASES) ./test
	QUORATE_IMAGE=$(CURDIR)/bin/image QUORATE_VM=systemd QUORATE_CHAOS=1 $(GO) test -count 1 -timeout 20m -v -run 'TestChaos$$/3_replicas' ./test -chaos.losses 8
	test/demo-of-image.sh

examples-test: build kubernetes coredns etcd ## The example add-ons on a master of the baked image, as it is if it has them (root; bakes one if there is none)
	@test -s bin/image/root.tar || $(MAKE) image EXAMPLES=yes
	QUORATE_IMAGE=$(CURDIR)/bin/image $(GO) test -count 1 -timeout 20m -v -run TestExampleAddons ./test

race: build kubernetes etcd etcd-former ## The tests of the packages that run goroutines, with the race detector
	$(GO) test -race -timeout 20m ./agent/... ./cmd/... ./supervisor/... ./etcdmember/... ./certs/... ./internal/...

guest: ## For image-test and one case of the rounds, a machine with a clock of its own: qemu, and Debian's kernel, not installed, in bin/guest/
	@images/deps.sh guest && test/guest/make.sh bin/guest || echo "without a machine of its own: the case of the rounds that needs it is skipped, and image-test fails" >&2

chaos: build kubernetes etcd etcd-former ## 110 random VM losses under load, random orders and documents, Google's services as slow as they are (root, 40 minutes)
	QUORATE_CHAOS=1 $(GO) test -count 1 -timeout 10m -v -run ByOrders ./etcdmember/ringtest
	QUORATE_CHAOS=1 $(GO) test -count 1 -timeout 20m -v -run 'TestDocuments' ./controlplane
	QUORATE_CHAOS=1 QUORATE_TIMES=google $(GO) test -count 1 -timeout 60m -v -run 'TestChaos$$' ./test

rounds: build kubernetes etcd etcd-former guest ## Every case of masters in the rounds that find rare faults (root, two hours)
	QUORATE_CHAOS=1 $(GO) test -count 1 -timeout 150m -v -skip 'TestChaos$$' ./test

failovers: build kubernetes etcd ## Twenty stops and twenty crashes of each kind of what is elected, with both profiles (root, about 45 minutes)
	QUORATE_CHAOS=1 $(GO) test -count 1 -timeout 120m -v -run TestWhatIsElectedFailsOver ./test -chaos.failovers 20

faults: build ## Each fault that health has to name the cause of, and quiet minutes (root, an hour)
	QUORATE_FAULTS=. $(GO) test -count 1 -timeout 90m -v -run TestHealth ./test

alerts: ## docs/alerts.yaml in Prometheus' own engine, and by promtool; a module of its own (a minute when nothing is cached)
	cd test/alerts && $(GO) vet . && $(GO) test -count 1 .
	@# The ways to find targets are left out: they bring the libraries of twenty clouds.
	cd test/alerts && $(GO) build -tags remove_all_sd -o ../../bin/promtool github.com/prometheus/prometheus/cmd/promtool
	bin/promtool check rules docs/alerts.yaml
	bin/promtool test rules test/alerts/alerts.test.yaml

terraform: ## The Terraform of docs/gce.md, parsed and held against the rest of the page, a module of its own
	cd test/terraform && $(GO) vet . && $(GO) test -count 1 .

addons: kubernetes etcd ## Three managers over a thousand objects, and two versions of a set, and kube-addon-manager (35 minutes)
	QUORATE_ADDONS=1 $(GO) test -count 1 -timeout 60m -v ./addons

bench: build kubernetes ## Boots, repairs and write stalls against the floor; memory, idle CPU; a crowd of nodes (root, about 40 minutes); VMS=systemd: of masters that boot bin/image
	$(GO) test -run '^$$' -bench . -benchtime 200ms ./certs ./etcdmember/table ./internal/record/bucket
	$(GO) test -run '^$$' -bench Watch -benchtime 1x ./etcdmember/member
	$(GO) run ./test/bench $(if $(filter systemd,$(VMS)),-vms systemd)

bench-watch: build kubernetes monit ## The watch of the kubelet against others (root, 40 minutes; bakes the image if there is none)
	@test -s bin/image/root.tar || $(MAKE) image
	$(GO) run ./test/bench -only watch

monit: ## Debian's monit, not installed, for bench
	@test/bench/monit.sh bin/monit

mutate: ## Faults in the membership's deciders, each of which a test has to notice (at most 20 minutes)
	$(GO) run ./test/mutate

fuzz: ## Half a minute of each fuzz test
	$(GO) test -run '^$$' -fuzz FuzzParse -fuzztime 30s ./internal/replica

lint: ## gofmt, vet, staticcheck, a tidy go.mod, the rules of the tree
	@test -z "$$(gofmt -s -l $$(git ls-files -co --exclude-standard '*.go'))" || { gofmt -s -d $$(git ls-files -co --exclude-standard '*.go') | head -40; exit 1; }
	$(GO) vet $(PACKAGES)
	$(GO) mod tidy -diff
	$(GO) run $(STATICCHECK) $(PACKAGES)
	$(GO) test $(TESTFLAGS) ./test/house

vuln: ## Known vulnerabilities, where the machine can reach their data
	$(GO) run $(GOVULNCHECK) $(PACKAGES)

clean: demo-down ## Remove what was built here; the caches outside the repository stay
	rm -rf bin $(STATE)

.PHONY: help demo man demo-watch demo-check demo-down test cases check cases-systemd deps build kubernetes coredns etcd etcd-former image install image-test of-this-machine examples-test race guest chaos rounds failovers faults alerts terraform addons bench bench-watch monit mutate fuzz lint vuln clean
