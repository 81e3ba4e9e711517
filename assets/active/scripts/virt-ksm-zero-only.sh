#!/bin/sh
# Lets KSM, the kernel's merging of equal memory pages, merge pages that hold nothing but zeros, and no others.
#
# Merging of other pages would let one virtual machine find out by timing what is in the memory of another. Only a switch of
# Red Hat's kernels restricts KSM to zero pages. Without that switch, or when it does not take, KSM is not started.
#
# Speed: 1000 pages a round, and a pause between rounds of 25600 ms divided by the memory in GiB, between 10 and 50 ms. Up to
# 512 GiB that is at most 20000 pages a second; a larger machine is scanned as fast as its size asks for, within 10 ms.
#
# Variable: ROOT (prefix of every path, for tests).
set -eu
export LC_ALL=C

ROOT=${ROOT:-}
KSM=$ROOT/sys/kernel/mm/ksm
SWITCH=$KSM/redhat_only_zero_pages
KHUGEPAGED=$ROOT/sys/kernel/mm/transparent_hugepage/khugepaged
PAGES=1000
BUDGET=25600
SHORTEST=10
LONGEST=50

say() { printf 'virt-ksm-zero-only: %s\n' "$*"; }
warn() { printf 'virt-ksm-zero-only: warning: %s\n' "$*" >&2; }
die() { printf 'virt-ksm-zero-only: error: %s\n' "$*" >&2; exit 1; }
value() { [ ! -r "$1" ] || cat "$1"; }

# put FILE VALUE: writes a value and reads it back; fails when the kernel does not hold it.
put() { { echo "$2" >"$1"; } 2>/dev/null && [ "$(value "$1")" = "$2" ]; }

if [ ! -e "$KSM/run" ]; then
    say "this kernel has no KSM; nothing to do"
    exit 0
fi
running=$(value "$KSM/run")
if [ ! -e "$SWITCH" ]; then
    say "this kernel cannot restrict KSM to zero pages (no $SWITCH); KSM is not started"
    [ "$running" != 1 ] || warn "KSM runs already and merges all pages; somebody else started it, and it is left alone"
    exit 0
fi

before=$(value "$SWITCH")
put "$SWITCH" 1 || die "could not restrict KSM to zero pages ($SWITCH does not take 1); KSM is not started"
if [ "$running" = 1 ] && [ "$before" != 1 ]; then
    warn "KSM ran before and merged all pages; those stay merged until they are written, or until 2 is written to $KSM/run"
fi

kib=$(awk '$1 == "MemTotal:" { print $2 }' "$ROOT/proc/meminfo" 2>/dev/null) || kib=
pause=$LONGEST
if [ -n "$kib" ]; then
    # Rounded up: MemTotal is a little less than what is built in.
    gib=$(((kib + 1048575) / 1048576))
    [ "$gib" -ge 1 ] || gib=1
    pause=$((BUDGET / gib))
    [ "$pause" -ge "$SHORTEST" ] || pause=$SHORTEST
    [ "$pause" -le "$LONGEST" ] || pause=$LONGEST
else
    warn "$ROOT/proc/meminfo has no MemTotal; taking the longest pause"
fi

put "$KSM/pages_to_scan" "$PAGES" || warn "could not set $KSM/pages_to_scan to $PAGES; it stays as it is"
put "$KSM/sleep_millisecs" "$pause" || warn "could not set $KSM/sleep_millisecs to $pause; it stays as it is"
# khugepaged counts merged zero pages as absent, and would fill in real memory for up to this many of them in one huge page.
if [ -e "$KHUGEPAGED/max_ptes_none" ]; then
    put "$KHUGEPAGED/max_ptes_none" 0 || warn "could not set $KHUGEPAGED/max_ptes_none to 0: huge pages may undo what was merged"
fi

# Looked at once more: nobody must have taken it back meanwhile.
[ "$(value "$SWITCH")" = 1 ] || die "$SWITCH was taken back; KSM is not started"
put "$KSM/run" 1 || die "could not start KSM ($KSM/run does not take 1)"
say "KSM merges zero pages: $PAGES pages every $pause ms"
