#!/bin/sh
# Gives transparent huge pages to those who ask for them, and lets khugepaged keep up with the memory of this machine.
#
# QEMU asks for huge pages for the memory of its guest; other processes do not, and only use more memory when they get them.
# khugepaged collects small pages into huge ones in the background. By default it looks at 4096 pages every 10 s, which takes
# more than a week for one terabyte; here it looks at 130000 pages every 1000 ms + 64000 ms divided by the memory in GiB.
#
# Variable: ROOT (prefix of every path, for tests).
set -eu
export LC_ALL=C

ROOT=${ROOT:-}
THP=$ROOT/sys/kernel/mm/transparent_hugepage
PAGES=130000
SHORTEST=1000
SHARE=64000

say() { printf 'virt-thp-tuning: %s\n' "$*"; }
warn() { printf 'virt-thp-tuning: warning: %s\n' "$*" >&2; }

put() { { echo "$2" >"$1"; } 2>/dev/null && [ "$(cat "$1")" = "$2" ]; }

if [ ! -e "$THP/enabled" ]; then
    say "this kernel has no transparent huge pages; nothing to do"
    exit 0
fi

# Reading this file gives all choices, with the chosen one in brackets.
is_madvise() {
    case $(cat "$THP/enabled") in
        *'[madvise]'* | madvise) ;;
        *) return 1 ;;
    esac
}

failed=0
if ! is_madvise; then
    { echo madvise >"$THP/enabled"; } 2>/dev/null || :
    if is_madvise; then
        say "$THP/enabled is madvise now"
    else
        warn "could not set $THP/enabled to madvise; it stays: $(cat "$THP/enabled")"
        failed=1
    fi
fi

kib=$(awk '$1 == "MemTotal:" { print $2 }' "$ROOT/proc/meminfo" 2>/dev/null) || kib=
if [ -z "$kib" ]; then
    warn "$ROOT/proc/meminfo has no MemTotal; khugepaged stays as it is"
    exit 1
fi
# Rounded up: MemTotal is a little less than what is built in.
gib=$(((kib + 1048575) / 1048576))
[ "$gib" -ge 1 ] || gib=1
pause=$((SHORTEST + SHARE / gib))

for setting in "pages_to_scan $PAGES" "scan_sleep_millisecs $pause"; do
    file=$THP/khugepaged/${setting% *}
    if [ ! -e "$file" ]; then
        warn "$file does not exist; it is passed over"
    elif ! put "$file" "${setting#* }"; then
        warn "could not set $file to ${setting#* }; it stays $(cat "$file")"
        failed=1
    fi
done
say "khugepaged looks at $PAGES pages every $pause ms"
exit "$failed"
