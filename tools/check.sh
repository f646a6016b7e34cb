#!/bin/bash
# Checks everything: the packages, format, build, dependency map, clang-tidy, tests. Continues after
# a failure, so that one run reports all errors.

set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

usage()
{
    cat <<'TEXT'
usage: tools/check.sh [--fix] [--fast] [--help]

Runs clang-format, the build, the dependency map's completeness, clang-tidy as
errors over every .c file, and the tests. Exit status 0 when all of it holds.

  --fix    rewrite files in place where clang-format asks for it
  --fast   clang-tidy only on files changed since the last commit, and only
           tests of size small
  --help   this text
TEXT
}

fix=0
fast=0
for argument in "$@"; do
    case "$argument" in
    --fix) fix=1 ;;
    --fast) fast=1 ;;
    --help)
        usage
        exit 0
        ;;
    *)
        echo "check: unknown argument '$argument'" >&2
        usage >&2
        exit 2
        ;;
    esac
done

readonly jobs=2
readonly tidy_flags=(-std=c11 -D_POSIX_C_SOURCE=200809L -I. -Iapi -Ibazel-bin -Wall -Wextra -Wno-unused-parameter)

# Of the names that are read, those of files that exist, each once.
existing()
{
    sort -u | while IFS= read -r file; do
        [ ! -f "$file" ] || printf '%s\n' "$file"
    done
}

# files PATTERN...: those that git tracks or would; and of these those that have changed.
files()
{
    git ls-files -co --exclude-standard -- "$@" | existing
}

changed_files()
{
    {
        git diff --name-only HEAD -- "$@"
        git ls-files -o --exclude-standard -- "$@"
    } | existing
}

check_packages()
{
    tools/setup.sh --tests --check
}

# The dialect preludes are device code, laid out by hand.
check_format()
{
    local mode=(--dry-run --Werror)
    [ "$fix" -eq 0 ] || mode=(-i)
    files '*.c' '*.h' '*.cc' | xargs -r clang-format "${mode[@]}"
}

check_build()
{
    bazel build --noshow_progress //...
}

# The tests of the map check every target of a folder of the map, except those tagged manual
# and groups of files, which compile nothing.
check_map()
{
    local folder scope=() unseen
    for folder in $(sed -n '/^USES/,/^}/s/^    "\([a-z/_]*\)":.*/\1/p' tests/arch/map.bzl); do
        [ ! -f "$folder/BUILD" ] || scope+=("//$folder:all")
        [ -z "$(find "$folder" -mindepth 2 -name BUILD 2>/dev/null)" ] || scope+=("//$folder/...")
    done
    unseen="$(bazel query --noshow_progress \
        "let all = kind(rule, set(${scope[*]})) in \$all except deps(//tests/arch:mapped)
            except attr(tags, manual, \$all) except kind('config_setting|filegroup|test', \$all)" \
        2>/dev/null)" || {
        echo "the query of the map failed: bazel query 'deps(//tests/arch:mapped)' says why"
        return 1
    }
    [ -n "$unseen" ] || return 0
    echo "no test of the map sees these targets; name them in TARGETS of tests/arch/map.bzl:"
    printf '%s\n' "$unseen"
    return 1
}

# One file a process: clang-tidy 14 repeats findings about va_list in later files. A file that needs
# further flags (-DNAME=x, which its rule sets) names them, in a line "// clang-tidy: FLAGS".
check_tidy()
{
    local list=files
    [ "$fast" -eq 0 ] || list=changed_files
    "$list" '*.c' | xargs -r -P "$jobs" -I '{}' bash -c '
        file="$1"
        shift
        flags="$(sed -n "s|^// clang-tidy: ||p" "$file")"
        eval "flags=($flags)"
        output="$(clang-tidy --quiet "$file" -- "${flags[@]}" "$@" 2>&1)" && exit 0
        printf "%s\n" "$output" | grep -v "warnings generated\|^Suppressed\|^Use -header-filter"
        exit 1' tidy '{}' "${tidy_flags[@]}"
}

check_tests()
{
    local only=()
    [ "$fast" -eq 0 ] || only=(--test_size_filters=small)
    bazel test --noshow_progress "${only[@]}" //...
}

summary=""
failed=0
for step in packages format build map tidy tests; do
    echo "== $step"
    began=$SECONDS
    if "check_$step"; then
        result=ok
    else
        result=FAILED
        failed=1
    fi
    summary+="$(printf '%-10s %-8s %5d s' "$step" "$result" $((SECONDS - began)))"$'\n'
done
printf '\n%s' "$summary"
exit "$failed"
