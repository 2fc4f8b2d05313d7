# The image of the GitHub Action. Two environments live in it side by side:
#   /opt/agent-eval   the reporter, with its own pins
#   /opt/suite        the suite: pytest and pydantic; the `install` input installs here. The
#                     package is not installed in it: the runner lends it the plugin's source, so
#                     pip in there never asks for the reporter's pins.
# uv is in the reporter's: with the input `python-version` it makes another one for the suite, of
# /opt/suite.txt.
# The last stage starts from nothing: a layer that removes files of the base would not make the
# image smaller (docs/decisions/0062-image-from-scratch.md).
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY pyproject.toml requirements/lock.txt ./
# PyGithub signs what GitHub Apps send with cryptography: nobody does here, and its import alone
# takes a sixth of PyGithub's time. So it goes, with all of NumPy that only its developers use.
# uv checks the hashes of constraints, which pip does not; pip installs uv.
ENV UV_NO_CACHE=1 UV_SYSTEM_CERTS=1 UV_NO_CONFIG=1
RUN python3 -m venv /build \
    && awk '/^[a-z]/ { wanted = /^uv==/ } wanted' lock.txt >uv.txt \
    && /build/bin/pip install --quiet --require-hashes --requirement uv.txt \
    && install="/build/bin/uv pip install --quiet --require-hashes --requirement pyproject.toml --constraint lock.txt --python" \
    && $install /build --group build \
    && python3 -m venv --without-pip /opt/agent-eval \
    && $install /opt/agent-eval --extra inspect --group lock \
    && find /opt/agent-eval/lib/python3*/site-packages/numpy \( -type d \( -name tests -o -name f2py -o -name include \) -prune -o -name '*.pyi' \) -exec rm -r {} + \
    && /build/bin/pip --python /opt/agent-eval/bin/python uninstall --quiet --yes cryptography \
    && /build/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate \
        --group suite --constraint lock.txt --output-file /opt/suite.txt \
    && python3 -m venv /opt/suite \
    && /build/bin/pip --python /opt/suite/bin/python install --quiet --no-compile --require-hashes --requirement /opt/suite.txt
COPY README.md LICENSE ./
COPY ci_agent_eval/ ci_agent_eval/
# Bytecode that is never checked against its source starts fastest, and nothing here changes. The
# page's template is compiled, too. Pygments' 600 lexers and styles are left as they are: pytest
# uses one of each. Both environments hold pydantic: its equal files are stored once, and pip
# replaces a file rather than write into it.
# The build backend comes from /build, so that it is not in the image.
RUN /build/bin/pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir dist . \
    && /build/bin/pip --python /opt/agent-eval/bin/python install --quiet --no-compile --no-deps --no-index dist/*.whl \
    && python3 -m compileall -q -j 0 -x 'pygments/(lexers|styles)/' --invalidation-mode unchecked-hash /opt \
    && /opt/agent-eval/bin/python -I -c 'from ci_agent_eval.render.html import assets; assets.load_template()' \
    && hardlink --quiet --ignore-time /opt

# A baseline may be in the history (git:REF:PATH), and `install` may clone what the suite needs.
# Debian's package of git brings Perl with it, a hundred megabytes in all: this takes what those
# two need, with the libraries that the base has not.
FROM ${BASE} AS git
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# Debian keeps one version of a package only, so that a pinned one is soon not there.
# hadolint ignore=DL3008
RUN find /usr/lib -name '*.so.*' -printf '%f\n' >/libraries-of-base \
    && apt-get update \
    && apt-get install --yes --no-install-recommends git
WORKDIR /usr/lib/git-core
RUN mkdir /git \
    && cp --parents --no-dereference /usr/bin/git{,-upload-pack} "$PWD"/git-remote-{http,https} \
        "$PWD"/git-submodule "$PWD"/git-sh-{setup,i18n,i18n--envsubst} /git \
    && cp --parents --recursive /usr/share/git-core/templates /git \
    && ldd git-remote-http | awk '$3 ~ "^/" { print $3 }' | while read -r library; do \
        grep --quiet --line-regexp --fixed-strings "${library##*/}" /libraries-of-base && continue; \
        place="/git/usr${library#/usr}"; \
        mkdir --parents "${place%/*}"; \
        cp --dereference "$library" "$place"; \
    done

# The base without the files that Debian's slim images leave out, and without its pip: the suite's
# environment has one. Official slim images carry no bytecode of the standard library: the import
# leaves what we use.
FROM ${BASE} AS base
COPY --from=build /opt /opt
RUN find /usr/share/doc -type f ! -name copyright -delete \
    && find /usr/share/doc -mindepth 1 -type d -empty -delete \
    && find /var/lib/apt/lists /var/cache /var/log -type f -delete \
    && rm -rf /usr/share/man /usr/share/info /usr/share/lintian /usr/share/locale \
    && find /usr \( -path '*/python3*/*-packages/pip*' -o -path '*/bin/pip*' \) -prune -exec rm -r {} + \
    && /opt/agent-eval/bin/python -c 'import asyncio, sqlite3, ci_agent_eval.app.cli, ci_agent_eval.app.action, ci_agent_eval.github.client' \
    && rm -r /opt/agent-eval /opt/suite

FROM scratch
LABEL org.opencontainers.image.title="agent-eval" \
      org.opencontainers.image.description="Agent tests as a required status check" \
      org.opencontainers.image.licenses="MIT"
# hadolint ignore=DL3067
COPY --from=base / /
COPY --from=git /git /
COPY --from=build /opt /opt
# A suite run as root leaves no root-owned bytecode in the user's workspace, progress is printed
# at once, and the user's `install` command needs no cache and no advice.
ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    AGENT_EVAL_PYTHON=/opt/suite/bin/python \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
# Actions run as root (the workspace is root's), so there is no USER.
ENTRYPOINT ["/opt/agent-eval/bin/agent-eval", "action"]
