"""The options of pytest and of popular plugins, with their numbers of values.

Generated from the real parsers of the named versions; `tests/unit/steering/policy` compares the
table with the installed pytest and plugins. In the table `--name` is a flag, `--name=` takes
one value, `--name==` two, `--name?` takes the next word unless it is an option, and `--name+`
takes all words up to the next option.
"""

from __future__ import annotations

import re
from typing import Literal

Arity = Literal["0", "1", "2", "?", "+"]

_TABLE = """
# pytest 9.2.0
-V -W= -c= -h -k= -l -m= -o= -p= -q -r= -s -v -x --assert= --basetemp= --cache-clear
--cache-show? --capture= --co --code-highlight= --collect-in-virtualenv --collect-only
--collectonly --color= --confcutdir= --config-file= --continue-on-collection-errors --debug?
--deselect= --disable-plugin-autoload --disable-pytest-warnings --disable-warnings
--doctest-continue-on-failure --doctest-glob= --doctest-ignore-import-errors
--doctest-modules --doctest-report= --durations-min= --durations= --exitfirst --failed-first
--ff --fixtures --fixtures-per-test --force-short-summary --full-trace --fulltrace
--funcargs --help --ignore-glob= --ignore= --import-mode= --junit-prefix= --junit-xml=
--junitprefix= --junitxml= --keep-duplicates --keepduplicates --last-failed
--last-failed-no-failures= --lf --lfnf= --log-auto-indent= --log-cli-date-format=
--log-cli-format= --log-cli-level= --log-date-format= --log-disable= --log-file-date-format=
--log-file-format= --log-file-level= --log-file-mode= --log-file= --log-format= --log-level=
--markers --max-warnings= --maxfail= --new-first --nf --no-fold-skipped --no-header
--no-showlocals --no-summary --noconftest --override-ini= --pastebin= --pdb --pdbcls=
--pyargs --pythonwarnings= --quiet --report-chars= --rootdir= --runxfail --setup-only
--setup-plan --setup-show --setuponly --setupplan --setupshow --show-capture= --showlocals
--stepwise --stepwise-reset --stepwise-skip --strict --strict-config --strict-markers --sw
--sw-reset --sw-skip --tb= --trace --trace-config --traceconfig --verbose --verbosity=
--version --xfail-tb
# anyio 4.16.0
--anyio-mode=
# hypothesis 6.170.15
--hypothesis-explain --hypothesis-profile= --hypothesis-seed= --hypothesis-show-statistics
--hypothesis-verbosity=
# pytest-asyncio 1.5.0
--asyncio-debug --asyncio-mode=
# pytest-bdd 9.0.1
--cucumber-json= --cucumberjson= --feature= --generate-missing --gherkin-terminal-reporter
# pytest-benchmark 5.3.1
--benchmark-autosave --benchmark-calibration-precision= --benchmark-columns=
--benchmark-compare-fail+ --benchmark-compare? --benchmark-confidence=
--benchmark-cprofile-dump? --benchmark-cprofile-loops= --benchmark-cprofile-top=
--benchmark-cprofile= --benchmark-disable --benchmark-disable-gc --benchmark-enable
--benchmark-group-by= --benchmark-histogram? --benchmark-json= --benchmark-max-time=
--benchmark-min-rounds= --benchmark-min-time= --benchmark-name= --benchmark-netrc?
--benchmark-only --benchmark-precision= --benchmark-quiet --benchmark-save-data
--benchmark-save= --benchmark-skip --benchmark-sort= --benchmark-storage=
--benchmark-time-unit= --benchmark-timer= --benchmark-verbose --benchmark-warmup-iterations=
--benchmark-warmup?
# pytest-clarity 1.0.1
--diff-symbols --diff-width=
# pytest-cov 7.1.0
--cov-append --cov-branch --cov-config= --cov-context= --cov-fail-under= --cov-precision=
--cov-report= --cov-reset --cov? --no-cov --no-cov-on-fail
# pytest-dependency 0.6.1
--ignore-unknown-dependency
# pytest-django 4.14.0
--create-db --dc= --ds= --fail-on-template-vars --liveserver= --migrations --no-migrations
--nomigrations --reuse-db
# pytest-docker 3.2.6
--container-scope=
# pytest-env 1.8.5
--envfile= --pytest-env-verbose
# pytest-flask 1.3.0
--live-server-clean-stop --live-server-host= --live-server-port= --live-server-wait=
--no-live-server-clean-stop --no-start-live-server --start-live-server
# pytest-forked 1.7.5
--forked
# pytest-github-actions-annotate-failures 0.4.2
--exclude-warning-annotations
# pytest-html 4.2.0
--css= --html= --self-contained-html
# pytest-instafail 0.5.0
--instafail
# pytest-json-report 1.5.0
--json-report --json-report-file= --json-report-indent= --json-report-omit+
--json-report-summary --json-report-verbosity=
# pytest-md-report 0.8.0
--md-report --md-report-color= --md-report-duration-precision= --md-report-error-color=
--md-report-exclude-outcomes+ --md-report-flavor= --md-report-margin= --md-report-mark-cols+
--md-report-output= --md-report-show-duration --md-report-skip-color=
--md-report-success-color= --md-report-tee --md-report-verbose= --md-report-zeros=
# pytest-memray 1.11.0
--fail-on-increase --hide-memray-summary --memray --memray-bin-path= --memray-bin-prefix=
--most-allocations= --native --stacks= --trace-python-allocators
# pytest-metadata 3.1.1
--metadata-from-json-file= --metadata-from-json= --metadata==
# pytest-monitor 1.6.6
--component-prefix= --db= --description= --force-component= --no-db --no-gc --no-monitor
--parametrization-explicit --remote-server= --restrict-scope-to= --tag=
# pytest-mypy 1.1.0
--mypy --mypy-config-file= --mypy-ignore-missing-imports --mypy-no-status-check
--mypy-report-style= --mypy-xfail
# pytest-order 1.5.0
--error-on-failed-ordering --fail-all-on-failed-ordering --indulgent-ordering
--order-after-ff --order-dependencies --order-group-scope= --order-marker-prefix=
--order-scope-level= --order-scope= --sparse-ordering
# pytest-picked 0.5.1
--mode= --parent-branch= --picked?
# pytest-playwright 0.10.0
--browser-channel= --browser= --device= --full-page-screenshot --headed --output=
--playwright-debug= --screenshot= --slowmo= --tracing= --video=
# pytest-profiling 1.8.1
--element-number= --profile --profile-svg --pstats-dir= --strip-dirs
# pytest-random-order 1.2.0
--random-order --random-order-bucket= --random-order-seed=
# pytest-randomly 5.1.0
--randomly-dont-reorganize --randomly-dont-reset-seed --randomly-seed=
# pytest-recording 0.14.1
--allowed-hosts= --block-network --disable-recording --record-mode=
# pytest-repeat 0.9.4
--count= --repeat-scope=
# pytest-reportlog 1.0.0
--report-log-exclude-logs-on-passed-tests --report-log=
# pytest-rerunfailures 16.7
--fail-on-flaky --force-reruns= --max-suite-reruns= --only-rerun= --rerun-except=
--rerun-exclude-path= --rerun-show-tracebacks --reruns-delay-backoff-factor= --reruns-delay=
--reruns-mode= --reruns=
# pytest-retry 1.7.0
--cumulative-timing= --retries= --retry-delay= --retry-outcome=
# pytest-ruff 0.5
--ruff --ruff-config= --ruff-format
# pytest-shard 0.1.2
--num-shards= --shard-id=
# pytest-socket 0.8.1
--allow-hosts= --allow-unix-socket --disable-socket --force-enable-socket
# pytest-split 0.11.0
--clean-durations --durations-path= --group= --splits= --splitting-algorithm=
--store-durations
# pytest-sugar 1.1.1
--force-sugar --old-summary --sugar-no-trace --sugar-trace-dir=
# pytest-testmon 2.2.0
--no-testmon --testmon --testmon-env= --testmon-forceselect --testmon-nocollect
--testmon-noselect --tmnet
# pytest-timeout 2.4.0
--session-timeout= --timeout-disable-debugger-detection --timeout-method= --timeout=
--timeout_method=
# pytest-xdist 3.8.0
-d -f -n= --dist= --loadscope-reorder --looponfail --max-worker-restart= --maxprocesses=
--maxschedchunk= --no-loadscope-reorder --numprocesses= --px= --rsyncdir= --rsyncignore=
--testrunuid= --tx=
# pytest-xprocess 1.0.2
--xkill --xshow
# syrupy 7.0.2
--snapshot-declaration-order --snapshot-default-extension= --snapshot-details
--snapshot-diff-mode= --snapshot-dirname= --snapshot-disable-unused
--snapshot-file-lock-timeout= --snapshot-ignore-file-extensions= --snapshot-no-cleanup
--snapshot-no-colors --snapshot-patch-pycharm-diff --snapshot-update
--snapshot-update-new-only --snapshot-warn-unused
# this plugin
--enable-pytest-full-suite-steering --disable-pytest-full-suite-steering
--aitest-iterations= --cassette-dir= --cassette-tools --cassette= --episode-adaptive-plan=
--episode-activity= --episode-again= --episode-changes=
--episode-artifact --episode-artifact-path= --episode-asked= --episode-commit=
--episode-concurrency= --episode-iterations= --episode-list=
--episode-report-dir= --episode-scenario=
--episode-suite= --episode-watched
--eval --eval-results= --eval-strict --experiment-dataset= --experiment-prefix=
--experiment-score= --experiment-server= --experiment= --llm-model=
--shard-durations= --shard= --total-cost-usd= --total-tokens= --total-wall-time-s=
# pytester, which is a part of pytest
--lsof --runpytest=
# options of older versions
--resultlog= --result-log= --no-print-logs --boxed
"""

_ARITIES: dict[str, Arity] = {"": "0", "=": "1", "==": "2", "?": "?", "+": "+"}
_ENTRY = re.compile(r"^(-[\w-]+|--[\w-]+)(==|[=?+]|)$")


def _parse_table(table: str) -> dict[str, Arity]:
    words = (
        word for line in table.splitlines() if not line.startswith("#") for word in line.split()
    )
    entries = (_ENTRY.match(word) for word in words)
    return {entry[1]: _ARITIES[entry[2]] for entry in entries if entry}


ARITY = _parse_table(_TABLE)
"""Arities of the options by their spelling."""

EXPRESSION_OPTIONS = frozenset({"-k", "-m"})
"""Options that narrow the run unless their last value is empty."""

NARROWING_OPTIONS = frozenset(
    {
        "--lf",
        "--last-failed",
        "--picked",
        "--testmon",
        "--testmon-forceselect",
        "--tmnet",
        "--benchmark-only",
        "--splits",
        "--num-shards",
        "--shard",
        "--episode-scenario",
    }
)
"""Options that select a part of the suite."""

SELECTING_OPTIONS = frozenset(
    {
        "--deselect",
        "--ignore",
        "--ignore-glob",
        "--doctest-modules",
        "--doctest-glob",
        "--config-file",
        "-c",
        "--rootdir",
        "--group",
        "--shard-id",
    }
)
"""Options that change which tests a run of the whole suite collects."""

SELECTING_INI_KEYS = frozenset(
    {"norecursedirs", "python_classes", "python_files", "python_functions", "testpaths"}
)
"""Keys of pytest's configuration that change which tests a run collects."""

CANCELLED_BY = {
    "--testmon-noselect": "--testmon",
    "--no-testmon": "--testmon",
}
"""Options that cancel a narrowing option."""

UNNARROWED_VALUES = {"--picked": "first"}
"""Values with which a narrowing option only orders the run."""

INFO_OPTIONS = frozenset(
    {
        "--co",
        "--collect-only",
        "--collectonly",
        "--version",
        "-V",
        "--help",
        "-h",
        "--fixtures",
        "--funcargs",
        "--fixtures-per-test",
        "--markers",
        "--setup-plan",
        "--setupplan",
        "--setup-only",
        "--setuponly",
        "--cache-show",
        "--xkill",
        "--xshow",
    }
)
"""Options that print information and run no test."""
