# Short targets; each is one command that a person could type.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: build test lint demo golden bench bench-ckpt properties crash-long plan-goldens

build: ## the one binary; the tag leaves out what only the gRPC transport of Cloud Storage needs (12 MB), which weft does not use
	CGO_ENABLED=0 go build -trimpath -tags disable_grpc_modules -ldflags "-s -w" -o bin/weft ./cmd/weft

test: ## what README and CI run
	go test -timeout 60m ./...

lint: ## gofmt, vet, staticcheck
	@test -z "$$(gofmt -l .)" || { echo "gofmt these files:"; gofmt -l .; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

demo: ## the main job on the embedded default
	go run ./cmd/weft finetune --demo

golden: ## rewrite the goldens after a change that means to change them; read the diff
	go test $$(git grep -l '"weft/internal/golden"' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|') -run Golden -update

bench: ## the row of BENCHMARKS.md, printed
	bash bench/run.sh

bench-ckpt: ## save and load 2 GB against dd and a plain read, and write the section of BENCHMARKS.md
	go run ./bench/ckpt

properties: ## the tests that draw their inputs, each for FOR, on new ones from a seed that is printed; SEED=N draws those of N again
	@seed=$${SEED:-$$(od -An -N5 -tu8 /dev/urandom | tr -d ' ')}; echo "seed $$seed"; \
	files=$$(git grep -l 'property\.Check(' -- '*_test.go'); \
	tests=$$(awk '/^func Test/ { split($$2, f, "("); name = f[1] } /property\.Check\(/ { print name }' $$files | sort -u | paste -sd '|' -); \
	go test -count 1 -timeout 24h -p 1 -run "^($$tests)$$" $$(dirname $$files | sort -u | sed 's|^|./|') -rapid.seed=$$seed -property.for=$${FOR:-30s}

crash-long: ## kill a run 1000 times, at every kind of operation on its storage and at random instants
	WEFT_CRASH_KILLS=$${WEFT_CRASH_KILLS:-1000} go test ./cmd/weft/e2e -run 'TestCrash' -count 1 -v -timeout 60m

plan-goldens: ## plan the released sizes at full depth and default effort, and settings of one side by side (an hour), and write the sections of BENCHMARKS.md
	go run ./bench/plans
	go run ./bench/plans --compare
	go run ./bench/plans --compare --effort O0
