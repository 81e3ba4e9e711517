#!/bin/sh
# Keeps swapping from starving the node: gives system services a short disk latency target and pods a long one.
#
# When system.slice misses its target on a disk, the kernel throttles whoever has a longer one there: pods, and with them the
# swapping done for them. Targets are set per disk, on the whole physical disks behind swap partitions, behind the file
# systems of swap files and behind the root file system; which ones these are is known only on the node, so drop-ins for the
# two slices are written at each boot. Compressed RAM has no disk.
#
# Variable: ROOT (prefix of every path, for tests; with one, systemd is not told).
set -eu
export LC_ALL=C

ROOT=${ROOT:-}
SYSTEM_TARGET=5ms
PODS_TARGET=50ms

say() { printf 'virt-swap-io-latency: %s\n' "$*"; }
warn() { printf 'virt-swap-io-latency: warning: %s\n' "$*" >&2; }

# Prints the name that sysfs has for a device node; links such as /dev/disk/by-partlabel/NAME and /dev/mapper/NAME are followed.
name_of_node() {
    real=$(readlink -f "$ROOT$1") || return 0
    nodes=$(readlink -f "$ROOT/dev") || return 0
    case $real in
        "$nodes"/*) printf '%s\n' "${real#"$nodes"/}" | tr / '!' ;;
    esac
}

# Prints the sysfs names of all swap partitions in use.
swap_partitions() {
    [ -r "$ROOT/proc/swaps" ] || return 0
    awk '$2 == "partition" { print $1 }' "$ROOT/proc/swaps" | while IFS= read -r node; do
        # Blanks in a path are written as \040 there.
        name_of_node "$(printf '%b' "$node")"
    done
}

# Prints the sysfs name of the device that is mounted at a place; fails when nothing is mounted there, prints nothing when it
# has no device.
mounted_at() {
    # The last mount of a place is the one that is seen. Its source stands after the lone dash.
    mount=$(PLACE=$1 awk '
        $5 == ENVIRON["PLACE"] {
            found = 1; number = $3; source = ""
            for (i = 7; i <= NF; i++) if ($i == "-") { source = $(i + 2); break }
        }
        END { if (found) print number, source }
    ' "$ROOT/proc/self/mountinfo")
    [ -n "$mount" ] || return 1
    number=${mount%% *}
    source=${mount#* }
    if [ -e "$ROOT/sys/dev/block/$number" ]; then
        basename "$(readlink -f "$ROOT/sys/dev/block/$number")"
        return 0
    fi
    # Some file systems (btrfs) have a device number that no block device has.
    case $source in
        /dev/*) name_of_node "$source" ;;
    esac
}

# Prints the sysfs name of the device under the root file system. Where / itself has none (an overlay, as on image-based
# systems), /sysroot and /var show the disk that holds it.
root_device() {
    for place in / /sysroot /var; do
        name=$(mounted_at "$place") || continue
        if [ -n "$name" ]; then
            printf '%s\n' "$name"
            return 0
        fi
    done
}

# Prints the sysfs names of the devices under the file systems of all swap files in use; for those on the root file system,
# nothing.
swap_files() {
    [ -r "$ROOT/proc/swaps" ] || return 0
    # Blanks stay written as \040: they are in the table of mounts, too.
    awk '$2 == "file" { print $1 }' "$ROOT/proc/swaps" | while IFS= read -r place; do
        while place=${place%/*} && [ -n "$place" ]; do
            if name=$(mounted_at "$place"); then
                [ -z "$name" ] || printf '%s\n' "$name"
                break
            fi
        done
    done
}

# Prints the whole physical disks under the named devices: from a partition to its disk, from LVM, LUKS, RAID and multipath
# devices to what they are made of.
disks_under() {
    queue=$*
    seen=' '
    while [ -n "$queue" ]; do
        name=${queue%% *}
        case $queue in
            *' '*) queue=${queue#* } ;;
            *) queue= ;;
        esac
        case $seen in *" $name "*) continue ;; esac
        seen="$seen$name "

        folder=$(readlink -f "$ROOT/sys/class/block/$name") && [ -d "$folder" ] || {
            warn "$name is not a block device that the kernel knows; it is passed over"
            continue
        }
        below=
        if [ -e "$folder/partition" ]; then
            below=$(basename "$(dirname "$folder")")
        else
            for slave in "$folder"/slaves/*; do
                [ -e "$slave" ] || continue
                below="$below${below:+ }${slave##*/}"
            done
        fi
        if [ -n "$below" ]; then
            queue="$queue${queue:+ }$below"
            continue
        fi
        case $name in
            zram* | ram* | loop* | dm-* | md*) ;;
            *) printf '/dev/%s\n' "$name" | tr '!' / ;;
        esac
    done
}

# Writes a slice's drop-in, in one step and only where it does not say the same already.
put() {
    folder=$ROOT/run/systemd/system/$1.slice.d
    file=$folder/20-io-latency.conf
    content=$(
        echo "# Written by virt-swap-io-latency."
        echo "[Slice]"
        for disk in $disks; do
            echo "IODeviceLatencyTargetSec=$disk $2"
        done
    )
    if [ -f "$file" ] && [ "$(cat "$file")" = "$content" ]; then
        say "$file is up to date"
        return 0
    fi
    mkdir -p "$folder"
    printf '%s\n' "$content" >"$file.new"
    chmod 0644 "$file.new"
    mv -f "$file.new" "$file"
    say "wrote $file"
}

# Without swap space this node is left as it is.
if ! awk 'NR > 1 { found = 1 } END { exit !found }' "$ROOT/proc/swaps" 2>/dev/null; then
    say "no swap space is in use; nothing to do"
    exit 0
fi

swaps="$(swap_partitions) $(swap_files)"
root=$(root_device)
# The names are single words: this joins them with blanks.
# shellcheck disable=SC2086
disks=$(disks_under $swaps $root | sort -u)
if [ -z "$disks" ]; then
    warn "found no physical disk behind swap space or /; no latency target is set"
    exit 0
fi

# shellcheck disable=SC2086
say "disks:" $disks
put system "$SYSTEM_TARGET"
put kubepods "$PODS_TARGET"
if [ -z "$ROOT" ]; then
    systemctl daemon-reload
fi
