#!/bin/sh
# From `git clone` to a landed change in real repositories, with `adj init`, `adj task add`, `adj run` and `adj review` only.
#
#   ADJ=target/debug/adj ADJ_REPOSITORIES=/folder/with/clones crates/adj/tests/repositories.sh [NAME…]
#
# The folder holds clones (bare or not) named click, fd, express, uuid and pyupgrade. A pnpm workspace, an editable package
# and a package of poetry are made here; `poetry` is played only if it is named. There is no model: the agent of adjutant.toml is replaced by a command that makes one small
# change, and nothing else of what `adj init` wrote is touched.
set -eu
adj=$(realpath "${ADJ:-target/debug/adj}")
clones=${ADJ_REPOSITORIES:?the folder with the clones}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GIT_CONFIG_GLOBAL="$work/gitconfig"
git config --file "$GIT_CONFIG_GLOBAL" user.name Tester
git config --file "$GIT_CONFIG_GLOBAL" user.email tester@example.com

# A pnpm workspace whose second package imports the first.
make_workspace() {
    mkdir -p "$1/packages/a" "$1/packages/b"
    cd "$1"
    echo '{"name":"w","private":true}' > package.json
    printf 'packages:\n  - "packages/*"\n' > pnpm-workspace.yaml
    echo node_modules > .gitignore
    echo '{"name":"@w/a","version":"1.0.0","main":"index.js"}' > packages/a/package.json
    echo 'module.exports = () => 1;' > packages/a/index.js
    echo '{"name":"@w/b","version":"1.0.0","scripts":{"test":"node test.js"},"dependencies":{"@w/a":"workspace:*","is-odd":"3.0.1"}}' \
        > packages/b/package.json
    echo 'if (!require("is-odd")(require("@w/a")())) { process.exit(1); }' > packages/b/test.js
    pnpm install --silent
    git init -q -b main . && git add . && git commit -qm Begin
}

# A Python package that its developer has installed as an editable one, beside its code.
make_editable() {
    mkdir -p "$1/src/pk" "$1/tests"
    cd "$1"
    printf '[build-system]\nrequires = ["setuptools>=64"]\nbuild-backend = "setuptools.build_meta"\n[project]\nname = "pk"\nversion = "1.0"\n' \
        > pyproject.toml
    echo 'def one(): return 1' > src/pk/__init__.py
    printf 'import pk\n\ndef test_one():\n    assert pk.one() == 1\n' > tests/test_one.py
    printf '*.egg-info\n__pycache__\n.venv\n' > .gitignore
    git init -q -b main . && git add . && git commit -qm Begin
}

# A package of poetry with a lock file. Its folder .venv is not ignored by git.
make_poetry() {
    mkdir -p "$1/src/pk" "$1/tests"
    cd "$1"
    cat > pyproject.toml <<'END'
[project]
name = "pk"
version = "1.0.0"
requires-python = ">=3.10"
dependencies = ["six>=1.16"]

[tool.poetry]
packages = [{ include = "pk", from = "src" }]

[tool.poetry.group.dev.dependencies]
pytest = "^8"

[[tool.poetry.source]]
name = "simple"
url = "https://pypi.org/simple/"
priority = "primary"

[build-system]
requires = ["poetry-core>=2.0"]
build-backend = "poetry.core.masonry.api"
END
    printf 'import six\n\n\ndef one():\n    return 1 if six.PY3 else 2\n' > src/pk/__init__.py
    printf 'import pk\n\n\ndef test_one():\n    assert pk.one() == 1\n' > tests/test_one.py
    echo __pycache__ > .gitignore
    poetry lock --quiet
    git init -q -b main . && git add . && git commit -qm Begin
}

play() {
    name=$1 change=$2 check=$3
    cd "$work"
    case $name in
        workspace | editable | poetry) "make_$name" "$work/origin-$name"; from=$work/origin-$name ;;
        *) from=$clones/$name ;;
    esac
    start=$(date +%s)
    git clone -q "$from" "$work/$name"
    cd "$work/$name"
    if [ "$name" = editable ]; then
        python3 -m venv .venv && .venv/bin/pip install -q -e .
    fi
    "$adj" init
    # The agent, which reads its prompt and makes the change.
    printf 'cat > /dev/null\n%s\ngit add -A && git commit -qm Change && echo DONE\n' "$change" > "$work/$name-agent"
    python3 - "$work/$name-agent" <<'END'
import re, sys
text = open("adjutant.toml").read()
agent = '[agents.coder]\nadapter = "command"\ncommand = ["sh", "%s"]\n' % sys.argv[1]
open("adjutant.toml", "w").write(re.sub(r"\[agents\.coder\]\n(?:(?!\[).*\n)*", agent + "\n", text))
END
    "$adj" task add "A small change" --id t-1
    # It ends with 1, since a person has to review.
    "$adj" run --until-idle || :
    "$adj" review t-1 --approve
    "$adj" run --until-idle
    end=$(date +%s)
    sh -c "$check" || { echo "$name: the change is not on $(git branch --show-current)"; return 1; }
    # The second tree finds the caches filled.
    "$adj" task add "Another" --id t-2 > /dev/null
    again=$(date +%s)
    "$adj" run --until-idle > /dev/null 2>&1 || :
    [ -z "$(git status --porcelain | grep -v adjutant.toml)" ] || { git status --porcelain; return 1; }
    echo "== $name: landed after $((end - start)) s; a second task was ready after $(($(date +%s) - again)) s"
}

for name in ${*:-click fd express uuid pyupgrade workspace editable}; do
    case $name in
        click) play click 'echo "# $ADJ_TASK" >> src/click/utils.py' 'git grep -q "^# t-1" main -- src/click/utils.py' ;;
        fd) play fd 'echo "// $ADJ_TASK" >> src/main.rs' 'git grep -q "^// t-1" master -- src/main.rs' ;;
        express) play express 'echo "// $ADJ_TASK" >> lib/utils.js' 'git grep -q "^// t-1" HEAD -- lib/utils.js' ;;
        uuid) play uuid 'echo "// $ADJ_TASK" >> util.go' 'git grep -q "^// t-1" master -- util.go' ;;
        pyupgrade) play pyupgrade 'echo "# $ADJ_TASK" >> pyupgrade/_main.py' 'git grep -q "^# t-1" main -- pyupgrade/_main.py' ;;
        workspace)
            play workspace 'echo "module.exports = () => 3; // $ADJ_TASK" > packages/a/index.js' \
                'git grep -q "=> 3; // t-1" main -- packages/a/index.js'
            ;;
        editable)
            play editable 'echo "def one(): return 1  # $ADJ_TASK" > src/pk/__init__.py' \
                'git grep -q "# t-1" main -- src/pk/__init__.py'
            ;;
        poetry)
            play poetry 'echo "# $ADJ_TASK" >> src/pk/__init__.py' 'git grep -q "^# t-1" main -- src/pk/__init__.py'
            ;;
    esac
done
