#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# Breaks a private copy of the program in one small way at a time, Tests/Mutations/*.patch, and shows
# that some test notices. The first line of a patch says what it breaks; each of its lines `Tests:` is
# a filter (a regular expression on module, suite and test) of tests that are to notice. ONLY=name
# runs one patch. MUTATE_DIR=folder keeps the copy and what was built there for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."

# A test run that takes longer than this many seconds hangs: that is noticed, too.
test_limit=600
# The longest test comes last. Of its lives 199: with 200 it also judges what they happened to cover,
# and a breakage is not noticed by that.
simulation='in simulation'
export LAMPLIGHTER_SEEDS=199
# A trap is told by its status; the program that would print its stack outlives the test.
export SWIFT_BACKTRACE=enable=no
# Of the targets only these tests and what they need are built.
suites='["StagesTests", "PipelineTests", "AppTests", "DriversTests", "BindingsTests"]'

patches=()
for patch in "$PWD"/Tests/Mutations/${ONLY:-*}.patch; do
    [ -e "$patch" ] || { echo "mutate: there is no ${patch##*/}" >&2; exit 1; }
    patches+=("$patch")
done

copy=${MUTATE_DIR:-$(mktemp -d "${TMPDIR:-/tmp}/lamplighter-mutations.XXXXXX")}
mkdir -p "$copy"
[ ! -e "$copy/.git" ] || { echo "mutate: $copy is a checkout, not a copy" >&2; exit 1; }
log=$copy/.build/mutation.log
test_pid=
# Called at the end, whatever brought it about.
leave() {
    [ -z "$test_pid" ] || kill -KILL "$test_pid" 2>/dev/null || true
    [ -n "${MUTATE_DIR:-}" ] || rm -rf "$copy"
}
trap leave EXIT
trap 'exit 130' INT TERM

# What is not ours to change keeps its date, so that a kept copy is not built anew.
find "$copy" -mindepth 1 -maxdepth 1 ! -name .build -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
    tar --create --null --files-from=- | tar --extract --directory="$copy"
[ ! -e Package.resolved ] || cp -p Package.resolved "$copy"
# The other programs and their tests would be linked anew for each patch and never run.
cat >>"$copy/Package.swift" <<MANIFEST
package.products = []
package.targets.removeAll { target in
    target.type == .executable || ["Checker", "Demo"].contains(target.name)
        || target.type == .test && !$suites.contains(target.name)
}
MANIFEST
cd "$copy"
mkdir -p .build
# The copy may lie inside of another repository, which is none of our business.
export GIT_CEILING_DIRECTORIES=${copy%/*}

build() { swift build --build-tests --quiet >"$log" 2>&1; }

# run OPTION...: 0 when some tests ran and all passed. Ends at the first failure, or after test_limit.
run() {
    local deadline=$((SECONDS + test_limit)) status=0
    .build/debug/lamplighterPackageTests.xctest --testing-library swift-testing --no-parallel \
        "$@" >"$log" 2>&1 &
    test_pid=$!
    # That a process was killed or has trapped the shell would say too.
    {
        while kill -0 "$test_pid"; do
            if grep -q '✘' "$log"; then break; fi
            if [ "$SECONDS" -ge "$deadline" ]; then
                echo "did not end" >>"$log"
                break
            fi
            sleep 0.2
        done
        kill -KILL "$test_pid" || true
        wait "$test_pid" || status=$?
    } 2>/dev/null
    test_pid=
    [ "$status" = 0 ] && grep -q 'Test run with [1-9]' "$log" && ! grep -q '✘' "$log"
}

# run_tests FILTER...
run_tests() {
    local filter
    for filter in "$@"; do run --filter "$filter" --skip "$simulation" || return 1; done
    [[ $* != *PipelineTests* ]] || run --filter "$simulation"
}

# The test that failed; or the one that was running when the process died or hung.
noticed_by() {
    local name
    name=$(sed -n 's/.*✘[^T]*Test "\([^"]*\)".*/\1/p' "$log" | head -n 1)
    if [ -n "$name" ]; then
        echo "\"$name\""
        return
    fi
    name=$(sed -n 's/.*◇[^T]*Test "\([^"]*\)" started.*/\1/p' "$log" | tail -n 1)
    if grep -q '^did not end$' "$log"; then
        echo "\"$name\", which does not end"
    else
        echo "a trap in \"$name\""
    fi
}

filters_of() { sed -n 's/^Tests: //p' "$1"; }
fail() {
    echo "mutate: $*" >&2
    [ ! -s "$log" ] || grep -E 'error:|✘' "$log" | head -n 20 >&2 || tail -n 20 "$log" >&2
    exit 1
}

echo "+ swift build --build-tests (the program as it is)"
build || fail "the program as it is does not build"
for patch in "${patches[@]}"; do
    [ -n "$(filters_of "$patch")" ] || fail "${patch##*/} does not say its Tests:"
done
readarray -t filters < <(for patch in "${patches[@]}"; do filters_of "$patch"; done | sort -u)
run_tests "${filters[@]}" || fail "the program as it is fails $(noticed_by)"

killed=0 survived=0 errors=0 began=$SECONDS
for patch in "${patches[@]}"; do
    name=$(basename "$patch" .patch)
    since=$SECONDS
    says="$name: $(head -n 1 "$patch")"
    if ! git apply -C1 --recount "$patch" 2>"$log"; then
        echo "$says ERROR: it does not apply"
        errors=$((errors + 1))
        continue
    fi
    if ! build; then
        echo "$says ERROR: it does not build"
        grep -m 3 'error:' "$log" >&2 || true
        errors=$((errors + 1))
    elif readarray -t filters < <(filters_of "$patch") && run_tests "${filters[@]}"; then
        echo "$says SURVIVED"
        survived=$((survived + 1))
    else
        echo "$says killed by $(noticed_by) in $((SECONDS - since)) s"
        killed=$((killed + 1))
    fi
    git apply -C1 --recount --reverse "$patch" 2>"$log" || fail "$name cannot be taken back"
done

minutes=$(((SECONDS - began + 30) / 60))
summary="${#patches[@]} mutations · $killed killed · $survived survived"
[ "$errors" = 0 ] || summary+=" · $errors errors"
echo "$summary · $minutes min"
[ "$survived" = 0 ] && [ "$errors" = 0 ]
