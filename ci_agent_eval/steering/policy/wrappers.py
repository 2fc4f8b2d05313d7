"""Table of programs that run other programs, with the options that precede the other program.

An entry lists the options with a value, so that the first remaining word is the command. The
options come from the programs' manuals; unlisted options are flags.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The command-line syntax of one program, or of one of its subcommands."""

    valued: frozenset[str] = frozenset()
    """Options that take the next word."""
    skip: int = 0
    """Words before the command, such as a host or a number of seconds."""
    script: frozenset[str] = frozenset()
    """Options with shell text as value."""
    module: frozenset[str] = frozenset()
    """Options with a Python module as value; the following words are its arguments."""
    start: frozenset[str] = frozenset()
    """Options followed by the command."""
    program: frozenset[str] = frozenset()
    """Options with the program as value; the remaining words are its arguments."""
    assignments: bool = False
    """Whether `NAME=value` may precede the command."""
    joined: bool = False
    """Whether a shell reads the command's joined words."""
    group: bool = False
    """Whether the next word is a subcommand with a separate entry."""
    runs: str = ""
    """The program that it runs with all remaining words."""


def _split_options(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _wrapper(
    valued: str = "",
    skip: int = 0,
    *,
    script: str = "",
    module: str = "",
    start: str = "",
    program: str = "",
    assignments: bool = False,
    joined: bool = False,
    group: bool = False,
    runs: str = "",
) -> Wrapper:
    return Wrapper(
        _split_options(f"{valued} {script} {module} {program}"),
        skip,
        _split_options(script),
        _split_options(module),
        _split_options(start),
        _split_options(program),
        assignments,
        joined,
        group,
        runs,
    )


_UV = "--directory --project --config-file --cache-dir --color --allow-insecure-host"
_UV_RUN = (
    f"{_UV} -p --python --with --with-editable --with-requirements --extra --no-extra --group "
    "--no-group --only-group --env-file --package -w -i --index --default-index --index-url "
    "--extra-index-url -f --find-links -P --upgrade-package --reinstall-package -C "
    "--config-setting --link-mode --resolution --prerelease --fork-strategy --exclude-newer "
    "--python-platform --index-strategy --keyring-provider --refresh-package --no-build-package "
    "--no-binary-package -c --constraints -b --build-constraints --overrides"
)
_DOCKER = "-c --context --config -H --host -l --log-level --tlscacert --tlscert --tlskey"
_EXEC = "-e --env --env-file -u --user -w --workdir --detach-keys --index"
_DOCKER_RUN = (
    "-a --attach --add-host --annotation -c --cpu-shares --cap-add --cap-drop --cgroup-parent "
    "--cgroupns --cidfile --cpus --cpuset-cpus --cpuset-mems --cpu-period --cpu-quota --device "
    "--dns --dns-option --dns-search --domainname -e --env --env-file --expose --gpus "
    "--group-add -h --hostname --health-cmd --ip --ip6 --ipc --isolation -l --label --label-file "
    "--link --log-driver --log-opt -m --memory --memory-swap --mount --name --network --net "
    "--network-alias --oom-score-adj -p --publish --pid --pids-limit --platform --pull --restart "
    "--runtime --security-opt --shm-size --stop-signal --stop-timeout --storage-opt --sysctl "
    "--tmpfs -u --user --ulimit --userns --uts -v --volume --volume-driver --volumes-from "
    "-w --workdir"
)
_COMPOSE = "-f --file -p --project-name --profile --env-file --project-directory --parallel --ansi"
_COMPOSE_RUN = "-e --env -l --label --name -p --publish -u --user -v --volume -w --workdir"
_COMPOSE_RUN += " --cap-add --cap-drop --pull --env-from-file"
_KUBECTL = "-n --namespace --context --cluster --kubeconfig -c --container -f --filename -s"
_CONDA = "-n --name -p --prefix --cwd -e --env"
_SSH = "-b -B -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w"
_SUDO = "-u --user -g --group -h --host -p --prompt -C --close-from -r --role -t --type -T"
_SUDO += " --command-timeout -U --other-user -D --chdir -R --chroot"

WRAPPERS: dict[str, Wrapper] = {
    # builtins of shells
    "builtin": _wrapper(),
    "command": _wrapper(),
    "coproc": _wrapper(),
    "exec": _wrapper("-a"),
    "time": _wrapper("-f --format -o --output"),
    "noglob": _wrapper(),
    "nocorrect": _wrapper(),
    # reserved words, which the grammar sometimes parses as commands, such as after `!`
    **dict.fromkeys(("!", "{", "do", "elif", "else", "if", "then", "until", "while"), _wrapper()),
    # limits, priorities, terminals
    "busybox": _wrapper(),
    "caffeinate": _wrapper("-t -w"),
    "catchsegv": _wrapper(),
    "chronic": _wrapper(),
    "chroot": _wrapper("", 1),
    "chrt": _wrapper("-T -P -D", 1),
    "cpulimit": _wrapper("-l --limit -c --cpu -e --exe -p --pid"),
    "dbus-run-session": _wrapper("--config-file --dbus-daemon"),
    "dumb-init": _wrapper("-r --rewrite"),
    "faketime": _wrapper("-f", 1),
    "firejail": _wrapper(),
    "flock": _wrapper("-w --wait --timeout -E --conflict-exit-code", 1, script="-c --command"),
    "gdb": _wrapper("-ex -iex -x --command", 99, start="--args -args"),
    "gtime": _wrapper("-f --format -o --output"),
    "gtimeout": _wrapper("-s --signal -k --kill-after", 1),
    "hyperfine": _wrapper(
        "-w --warmup -r --runs -m --min-runs -M --max-runs -p --prepare -s --setup -c --cleanup "
        "-n --command-name --export-json --export-markdown --export-csv -S --shell",
        joined=True,
    ),
    "ionice": _wrapper("-c --class -n --classdata -p --pid"),
    "ltrace": _wrapper("-a -A -D -e -E -F -l -n -o -p -s -u -w -x"),
    "nice": _wrapper("-n --adjustment"),
    "nohup": _wrapper(),
    "nodemon": _wrapper("-e --ext -w --watch -i --ignore -d", 99, script="-x --exec"),
    "nsenter": _wrapper("-t --target -S --setuid -G --setgid"),
    "numactl": _wrapper("-i -m -N -C -P -p --interleave --membind --cpunodebind --physcpubind"),
    "perf": _wrapper(group=True),
    "perf record": _wrapper("-e -F -o -c -g --call-graph"),
    "perf stat": _wrapper("-e -r -o"),
    "prlimit": _wrapper("-p --pid -o --output"),
    "proxychains": _wrapper("-f"),
    "proxychains4": _wrapper("-f"),
    "retry": _wrapper("-t --times -d --delay -m"),
    "rlwrap": _wrapper("-a -b -f -H -l -s"),
    "screen": _wrapper("-S -c -e -h -p -s -t -T"),
    "script": _wrapper("-I -O -B -T -E -m -o", 99, script="-c --command"),
    "setarch": _wrapper("", 1),
    "setsid": _wrapper(),
    "stdbuf": _wrapper("-i --input -o --output -e --error"),
    "strace": _wrapper("-a -b -e -E -I -o -O -p -P -s -S -u -U -X"),
    "systemd-inhibit": _wrapper("--what --who --why --mode"),
    "systemd-run": _wrapper("-p --property --unit -u -M -H -E --setenv --slice --uid --gid"),
    "taskset": _wrapper("", 1),
    "timeout": _wrapper("-s --signal -k --kill-after", 1),
    "tini": _wrapper("-p -e"),
    "tmux": _wrapper("-L -S -f -c", group=True),
    **dict.fromkeys(
        (
            f"tmux {name}"
            for name in (
                "new",
                "new-session",
                "neww",
                "new-window",
                "splitw",
                "split-window",
                "respawn-pane",
                "send",
                "send-keys",
            )
        ),
        _wrapper("-s -n -c -t -x -y -e -F -l -N", joined=True),
    ),
    "torsocks": _wrapper("-a -p -u -P"),
    "unbuffer": _wrapper(),
    "unshare": _wrapper("-S -G --setuid --setgid -R --root -w --wd"),
    "valgrind": _wrapper(),
    "watch": _wrapper("-n --interval -q --equexit", joined=True),
    "watchexec": _wrapper("-w --watch -e --exts -f --filter -i --ignore -d --debounce -s --signal"),
    "watchmedo": _wrapper(group=True),
    "watchmedo auto-restart": _wrapper("-d --directory -p --pattern --patterns -i --signal"),
    "watchmedo shell-command": _wrapper("-p --pattern --patterns", 99, script="-c --command"),
    "xvfb-run": _wrapper("-e --error-file -f --auth-file -n --server-num -s --server-args -w -p"),
    "entr": _wrapper(),
    # users, environments
    "aws-vault": _wrapper(group=True),
    "aws-vault exec": _wrapper("-d --duration --region", 1),
    "asdf": _wrapper(group=True),
    "asdf exec": _wrapper(),
    "chamber": _wrapper(group=True),
    "chamber exec": _wrapper("", 1),
    "ddtrace-run": _wrapper(),
    "devbox": _wrapper(group=True),
    "devbox run": _wrapper("-c --config -e --env --env-file"),
    "direnv": _wrapper(group=True),
    "direnv exec": _wrapper("", 1),
    "doas": _wrapper("-u -C"),
    "doppler": _wrapper(group=True),
    "doppler run": _wrapper("-p --project -c --config -t --token", script="--command"),
    "dotenv": _wrapper("-f --file -e -c -v", group=True),
    "dotenv run": _wrapper(),
    "env": _wrapper("-u --unset -C --chdir -P", assignments=True),
    "gosu": _wrapper("", 1),
    "infisical": _wrapper(group=True),
    "infisical run": _wrapper("-e --env -p --path --projectId", script="-c --command"),
    "mise": _wrapper("-C --cd -E --env", group=True),
    "mise exec": _wrapper("-j --jobs", 99, script="-c --command"),
    "mise x": _wrapper("-j --jobs", 99, script="-c --command"),
    "op": _wrapper(group=True),
    "op run": _wrapper("--env-file --account"),
    "opentelemetry-instrument": _wrapper(),
    "runuser": _wrapper("-u --user -g --group -s --shell", script="-c --command"),
    "setpriv": _wrapper("--reuid --regid --groups"),
    "su": _wrapper("-s --shell -g --group -G -w", 99, script="-c --command"),
    "su-exec": _wrapper("", 1),
    "sudo": _wrapper(_SUDO, assignments=True),
    "wsl": _wrapper("-d --distribution -u --user --cd --shell-type", start="-e --exec"),
    # Python's runners
    "cprofile": _wrapper("-o --outfile -s --sort", module="-m"),
    "conda": _wrapper(group=True),
    "conda run": _wrapper(_CONDA),
    "coverage": _wrapper(group=True),
    "coverage run": _wrapper(
        "--source --source-pkgs --rcfile --omit --include --concurrency --context --data-file "
        "--debug --save-signal",
        module="-m",
    ),
    "debugpy": _wrapper("--listen --connect --log-to --configure-subProcess", module="-m"),
    "hatch": _wrapper("-e --env -p --project --data-dir --cache-dir --config", group=True),
    "hatch run": _wrapper(),
    "hatch test": _wrapper(
        "-i --include -x --exclude -py --python --retries --retry-delay", runs="pytest"
    ),
    "kernprof": _wrapper("-o --outfile -s --setup -u --unit -p", module="-m"),
    "mamba": _wrapper(group=True),
    "mamba run": _wrapper(_CONDA),
    "memray": _wrapper(group=True),
    "memray run": _wrapper("-o --output", module="-m"),
    "micromamba": _wrapper("-r --root-prefix", group=True),
    "micromamba run": _wrapper(f"{_CONDA} -r --root-prefix"),
    "mprof": _wrapper(group=True),
    "mprof run": _wrapper("-T --interval -o --output"),
    "pdm": _wrapper("-c --config", group=True),
    "pdm run": _wrapper("-p --project --venv"),
    "pdb": _wrapper("-c --command", module="-m"),
    "pipenv": _wrapper("--python", group=True),
    "pipenv run": _wrapper(),
    "pipx": _wrapper(group=True),
    "pipx run": _wrapper("--spec --python --pip-args -i --index-url --path --with"),
    "pixi": _wrapper("--manifest-path", group=True),
    "pixi run": _wrapper("-e --environment --manifest-path -p --platform"),
    "poetry": _wrapper("-C --directory -P --project", group=True),
    "poetry run": _wrapper("-C --directory -P --project"),
    "py-spy": _wrapper(group=True),
    "py-spy record": _wrapper("-o --output -d --duration -r --rate -f --format"),
    "pyenv": _wrapper(group=True),
    "pyenv exec": _wrapper(),
    "pyinstrument": _wrapper("-o --outfile -r --renderer -i --interval", module="-m"),
    "rye": _wrapper(group=True),
    "rye run": _wrapper("--pyproject"),
    "rye test": _wrapper("-p --package --pyproject", runs="pytest"),
    "scalene": _wrapper("--outfile --cpu-percent-threshold", module="-m"),
    "tox": _wrapper("-c --conf --workdir --root -x --override", group=True),
    "tox exec": _wrapper("-e --env -c --conf"),
    "uv": _wrapper(_UV, group=True),
    "uv run": _wrapper(_UV_RUN, module="-m --module"),
    "uv tool": _wrapper(_UV, group=True),
    "uv tool run": _wrapper(f"{_UV_RUN} --from"),
    "uvx": _wrapper(f"{_UV_RUN} --from"),
    "viztracer": _wrapper("-o --output_file --max_stack_depth", module="-m --module"),
    # watchers of pytest
    "ptw": _wrapper("--ext --config --runner --afterrun --beforerun --onpass", runs="pytest"),
    "pytest-watch": _wrapper("--ext --config --runner --afterrun --beforerun", runs="pytest"),
    "pytest-watcher": _wrapper("--delay --runner --patterns", 1, runs="pytest"),
    # containers, hosts
    "devcontainer": _wrapper(group=True),
    "devcontainer exec": _wrapper(
        "--workspace-folder --config --container-id --id-label --remote-env --docker-path"
    ),
    "docker": _wrapper(_DOCKER, group=True),
    "docker compose": _wrapper(_COMPOSE, group=True),
    "docker compose exec": _wrapper(_EXEC, 1),
    "docker compose run": _wrapper(_COMPOSE_RUN, 1, program="--entrypoint"),
    "docker container": _wrapper(group=True),
    "docker container exec": _wrapper(_EXEC, 1),
    "docker container run": _wrapper(_DOCKER_RUN, 1, program="--entrypoint"),
    "docker exec": _wrapper(_EXEC, 1),
    "docker run": _wrapper(_DOCKER_RUN, 1, program="--entrypoint"),
    "docker-compose": _wrapper(_COMPOSE, group=True),
    "docker-compose exec": _wrapper(_EXEC, 1),
    "docker-compose run": _wrapper(_COMPOSE_RUN, 1, program="--entrypoint"),
    "heroku": _wrapper(group=True),
    "heroku run": _wrapper("-a --app -e --env -s --size -r --remote", joined=True),
    "kubectl": _wrapper(_KUBECTL, group=True),
    "kubectl exec": _wrapper(_KUBECTL, 1),
    "kubectl run": _wrapper(
        f"{_KUBECTL} --image --env --labels -l --overrides --port --restart", 1
    ),
    "gcloud": _wrapper("--project", group=True),
    "gcloud compute": _wrapper(group=True),
    "gcloud compute ssh": _wrapper("--zone --project", 99, script="--command"),
    "lxc": _wrapper(group=True),
    "lxc exec": _wrapper("--cwd --env --user --group --mode", 1),
    "ssh": _wrapper(_SSH, 1, joined=True),
    "sshpass": _wrapper("-p -f -d -P"),
    "vagrant": _wrapper(group=True),
    "vagrant ssh": _wrapper("", 99, script="-c --command"),
    # Nix
    "nix": _wrapper("--option --extra-experimental-features", group=True),
    "nix develop": _wrapper("--option", 99, start="-c --command"),
    "nix shell": _wrapper("--option", 99, start="-c --command"),
    "nix-shell": _wrapper("-p --packages -A --attr -I --option", 99, script="--run --command"),
    # JavaScript's runners
    "bunx": _wrapper("-p --package"),
    "cross-env": _wrapper(assignments=True),
    "cross-env-shell": _wrapper(assignments=True, joined=True),
    "npm": _wrapper("--prefix -C -w --workspace", group=True),
    "npm exec": _wrapper("-p --package -w --workspace", script="-c --call"),
    "npx": _wrapper("-p --package -w --workspace", script="-c --call"),
    "pnpm": _wrapper("-C --dir -F --filter", group=True),
    "pnpm exec": _wrapper("-C --dir -F --filter"),
    "yarn": _wrapper("--cwd", group=True),
    "yarn exec": _wrapper(),
    # others
    "accelerate": _wrapper(group=True),
    "accelerate launch": _wrapper("--config_file --num_processes", module="-m"),
    "git": _wrapper("-C -c --git-dir --work-tree", group=True),
    "git rebase": _wrapper("--onto -s --strategy -X", 99, script="-x --exec"),
    "git submodule": _wrapper(group=True),
    "git submodule foreach": _wrapper(joined=True),
    "git bisect": _wrapper(group=True),
    "git bisect run": _wrapper(),
    "mpiexec": _wrapper("-n -np --host --hostfile -H"),
    "mpirun": _wrapper("-n -np --host --hostfile -H"),
    "srun": _wrapper("-n -N -c -p -t -A -J --ntasks --nodes --partition --time"),
    "trace": _wrapper("-f --file -C --coverdir --ignore-module --ignore-dir", module="--module"),
    "torchrun": _wrapper("--nproc_per_node --nproc-per-node --nnodes", module="-m"),
    "xargs": _wrapper(
        "-a --arg-file -d --delimiter -E -I -J -L -n --max-args -P --max-procs -R -s -S "
        "--max-lines --max-chars --process-slot-var"
    ),
}


def _copy_entries(old: str, new: str) -> dict[str, Wrapper]:
    """Return copies of a program's entries for another program with the same options."""
    return {
        f"{new}{key.removeprefix(old)}": entry
        for key, entry in WRAPPERS.items()
        if key == old or key.startswith(f"{old} ")
    }


WRAPPERS |= _copy_entries("docker", "podman") | _copy_entries("docker", "nerdctl")
WRAPPERS |= _copy_entries("docker-compose", "podman-compose") | _copy_entries("kubectl", "oc")
