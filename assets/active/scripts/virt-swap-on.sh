#!/bin/sh
# Turns on one swap space: virt-swap-on PATH PRIORITY, where PATH is a partition or a file that holds a swap signature.
#
# A kubelet that was not told to accept swap refuses to start on a host that has some. Whether this kubelet was told is looked
# up first: its unit must read the drop-in directory with our file (workers of OpenShift do, control plane nodes and older
# releases do not), or failSwapOn must be off elsewhere. Otherwise swap stays off and the node runs as before.
#
# Variables: ROOT (prefix of every path, for tests), SWAPON (the program).
set -eu
export LC_ALL=C

ROOT=${ROOT:-}
SWAPON=${SWAPON:-/usr/sbin/swapon}
DROP_INS=/etc/openshift/kubelet.conf.d
DROP_IN=$DROP_INS/90-swap.conf

say() { printf 'virt-swap-on: %s\n' "$*"; }
warn() { printf 'virt-swap-on: warning: %s\n' "$*" >&2; }
die() { printf 'virt-swap-on: error: %s\n' "$*" >&2; exit 1; }

# Prints the kubelet's unit and its drop-ins without comments.
unit() {
    for file in "$ROOT"/usr/lib/systemd/system/kubelet.service "$ROOT"/etc/systemd/system/kubelet.service \
        "$ROOT"/etc/systemd/system/kubelet.service.d/*.conf; do
        [ ! -r "$file" ] || grep -v '^[[:blank:]]*[#;]' "$file" || :
    done
}

accepts_swap() {
    if unit | grep -Eq -e "--config-dir[= ]$DROP_INS/?([[:space:]\\\\\"']|\$)" && [ -s "$ROOT$DROP_IN" ]; then
        return 0
    fi
    if unit | grep -Eq -e '--fail-swap-on=false'; then
        return 0
    fi
    [ -r "$ROOT/etc/kubernetes/kubelet.conf" ] &&
        grep -Eq '^[[:blank:]]*"?failSwapOn"?:[[:blank:]]*false' "$ROOT/etc/kubernetes/kubelet.conf"
}

# Whether the space is in use already; links such as /dev/disk/by-partlabel/NAME are followed.
in_use() {
    [ -r "$ROOT/proc/swaps" ] || return 1
    real=$(readlink -f "$ROOT$1") || real=$ROOT$1
    # Blanks in a path are written as \040 there.
    awk 'NR > 1 { print $1 }' "$ROOT/proc/swaps" | while IFS= read -r line; do
        path=$ROOT$(printf '%b' "$line")
        path=$(readlink -f "$path") || continue
        [ "$path" != "$real" ] || echo yes
    done | grep -q yes
}

[ $# -eq 2 ] || die "expected a path and a priority"
path=$1
priority=$2

if [ ! -e "$ROOT$path" ]; then
    say "$path does not exist; nothing to do"
    exit 0
fi
if in_use "$path"; then
    say "$path is in use already"
    exit 0
fi
if ! accepts_swap; then
    warn "the kubelet of this node does not read $DROP_IN and would not start with swap; $path stays unused"
    exit 0
fi
"$SWAPON" --priority "$priority" "$path" || die "could not use $path as swap space; is it formatted with mkswap?"
say "$path is in use, with priority $priority"
