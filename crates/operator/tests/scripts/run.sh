#!/bin/sh
# Tests the node scripts of the asset pack on made-up /proc, /sys, /etc and /dev trees, under dash and bash, and their templates.
#
# Usage: run.sh [FOLDER OF THE PACK]. Needs python3 for the templates. The last line is "N passed, N failed".
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
pack=${1:-$here/../../../../assets}
scripts=$pack/active/scripts
template=$pack/active/machine-config/01-swap-enable.yaml.tpl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# A program that must never be called on a made-up tree; it leaves a trace.
mkdir "$work/bin"
printf '#!/bin/sh\necho "$*" >>"%s/systemctl-was-called"\n' "$work" >"$work/bin/systemctl"
# One that stands for swapon: it notes what it was told, and does what SWAPON_STATUS says.
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "$*" >>"$ROOT.swapon"\nexit "${SWAPON_STATUS:-0}"\n' >"$work/bin/swapon"
chmod 755 "$work/bin/systemctl" "$work/bin/swapon"

# --- asserting -------------------------------------------------------------------------------------------------------------

# check CASE: runs one case in a fresh tree, $T; the case fails when one of its expectations wrote to $T.faults.
check() {
    T=$work/$shell.$1
    mkdir -p "$T"
    : >"$T.faults"
    ("$1") || echo "the case itself ended with an error" >>"$T.faults"
    if [ -s "$T.faults" ]; then
        failed=$((failed + 1))
        echo "FAILED  $shell: $1"
        sed 's/^/        /' "$T.faults"
        [ ! -e "$T.out" ] || sed 's/^/        | /' "$T.out"
    else
        passed=$((passed + 1))
    fi
}

fault() { echo "$*" >>"$T.faults"; }
is() { [ "$2" = "$3" ] || fault "$1: expected '$2', got '$3'"; }
says() { grep -q -e "$1" "$T.out" || fault "expected to be told: $1"; }
silent_about() { ! grep -q -e "$1" "$T.out" || fault "expected not to be told: $1"; }
content() { [ ! -e "$1" ] || cat "$1"; }

# frozen FILE: from now on, nothing can be written to it, not even by root; reading gives some other text.
frozen() { ln -sf /proc/version "$1"; }

# run SCRIPT ARGUMENT...: output goes to $T.out, the exit status to $status.
run() {
    script=$scripts/$1.sh
    shift
    status=0
    env PATH="$work/bin:$PATH" ROOT="$T" PAGE_SIZE=4096 TRIES="${TRIES:-2}" WAIT=0 SWAPON="$work/bin/swapon" timeout 30 "$shell" "$script" "$@" >"$T.out" 2>&1 || status=$?
}

# --- watermarks ------------------------------------------------------------------------------------------------------------

knob() { echo "$T/proc/sys/vm/watermark_scale_factor"; }

# zones MIN LOW HIGH MANAGED, in pages; shared among two zones, beside lines that only look alike.
zones() {
    for half in DMA Normal; do
        [ "$half" = DMA ] && part=1 || part=0
        cat <<END
Node 0, zone $half
  per-node stats
      nr_free_pages 1
      workingset_low 77
  pages free     5000
        boost    0
        min      $(share "$1")
        low      $(share "$2")
        high     $(share "$3")
        promo    99999999
        spanned  99999999
        present  99999999
        managed  $(share "$4")
        protection: (0, 1, 2)
  pagesets
    cpu: 0
              count:    55
              high:     66666666
              high_min: 66666666
              low:      66666666
END
    done >"$T/proc/zoneinfo"
}
share() { [ "$part" = 1 ] && echo $(($1 / 4)) || echo $(($1 - $1 / 4)); }

# machine KIB: a tree with that much memory.
machine() {
    mkdir -p "$T/proc/sys/vm" "$T/etc/kubernetes" "$T/etc/openshift/kubelet.conf.d" "$T/var/lib/kubelet"
    printf 'MemTotal:       %s kB\nMemFree:        1 kB\n' "$1" >"$T/proc/meminfo"
    printf 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda5\tpartition\t8388604\t\t0\t\t100\n' >"$T/proc/swaps"
    echo untouched >"$(knob)"
}

without_swap_space_watermarks_stay() {
    machine 65800000
    printf 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n' >"$T/proc/swaps"
    run virt-swap-watermarks
    is "exit status" 0 "$status"
    says 'no swap space is in use'
    is knob untouched "$(content "$(knob)")"
}

# yaml_config LINE...: a kubelet configuration in the place where OpenShift has it.
yaml_config() {
    {
        printf 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'
        [ $# -eq 0 ] || printf '%s\n' "$@"
    } >"$T/etc/kubernetes/kubelet.conf"
}

# evicts QUANTITY LOW FACTOR: 16 GiB, MIN of 10000 pages; LOW (pages) lies between threshold and target.
evicts() {
    machine 16777216
    zones 10000 "$2" 400000 4000000
    yaml_config "evictionHard:" "  imagefs.available: 15%" "  memory.available: $1" "  nodefs.available: 10%"
    run virt-swap-watermarks
    is "exit status for $1" 0 "$status"
    is "factor for $1" "$3" "$(content "$(knob)")"
    silent_about 'warning\|error'
}

one_percent_of_memory_is_the_margin_on_a_large_machine() {
    machine 67108864
    zones 16896 30000 40000 16000000
    yaml_config "evictionHard:" "  memory.available: 100Mi"
    run virt-swap-watermarks
    is "exit status" 0 "$status"
    is factor 111 "$(content "$(knob)")"
    says 'watermark_scale_factor is 111 now'
}
a_threshold_in_kibibytes() { evicts 400000Ki 110000 389; }
a_threshold_in_mebibytes_and_quotes() { evicts '"500Mi"  # a remark' 130000 459; }
a_threshold_in_gibibytes() { evicts "'1Gi'" 270000 795; }
a_threshold_in_tebibytes_with_a_fraction() { evicts 0.001Ti 270000 810; }
a_threshold_in_kilobytes() { evicts 800000k 200000 628; }
a_threshold_in_megabytes() { evicts 700M 180000 567; }
a_threshold_as_a_share_of_memory() { evicts 5% 220000 664; }
a_threshold_in_plain_bytes() { evicts 600000000 150000 506; }
a_threshold_with_an_exponent() { evicts 1e9 250000 750; }

without_a_threshold_the_default_is_taken() {
    machine 16777216
    zones 10000 30000 40000 4000000
    yaml_config "evictionSoft:" "  memory.available: 1Gi" "evictionHard:" "  nodefs.available: 10%" "other:" "  memory.available: 2Gi"
    run virt-swap-watermarks
    is "exit status" 0 "$status"
    is factor 203 "$(content "$(knob)")"
    says 'default, 100Mi'
}

a_null_or_empty_map_of_thresholds_means_the_default() {
    for nothing in 'evictionHard: {}' 'evictionHard: null' 'evictionHard: {memory.available: null}' 'evictionHard:'; do
        machine 16777216
        zones 10000 30000 40000 4000000
        yaml_config "$nothing" "maxPods: 500"
        run virt-swap-watermarks
        is "factor for $nothing" 203 "$(content "$(knob)")"
    done
}

a_threshold_in_a_flow_map() {
    machine 16777216
    zones 10000 130000 140000 4000000
    yaml_config "evictionHard: {nodefs.available: 10%," "  'memory.available': \"500Mi\", imagefs.available: 15%}" "evictionSoft: {memory.available: 1Gi}"
    run virt-swap-watermarks
    is factor 459 "$(content "$(knob)")"
}

a_threshold_in_json() {
    machine 16777216
    zones 10000 130000 140000 4000000
    cat >"$T/var/lib/kubelet/config.json" <<'END'
{
  "apiVersion": "kubelet.config.k8s.io/v1beta1",
  "note": "a \"}{\" that is text, and \"evictionHard\": {\"memory.available\": \"9Gi\"}",
  "kind" : "KubeletConfiguration",
  "evictionSoft": {"memory.available": "1Gi"},
  "nested": {"evictionHard": {"memory.available": "2Gi"}, "kind": "Other"},
  "list": [{"memory.available": "3Gi"}, 1, true, null],
  "evictionHard": {
    "imagefs.available": "15%", "deep": {"memory.available": "4Gi"},
    "memory.available"
      :
      "500Mi", "deeper": {"memory.available": "5Gi"}
  },
  "evictionMinimumReclaim": {"memory.available": "7Gi"}, "maxPods": 500, "after": {"evictionHard": {"memory.available": "6Gi"}}
}
END
    run virt-swap-watermarks
    is "exit status" 0 "$status"
    is factor 459 "$(content "$(knob)")"
}

json_on_one_line_with_a_number_and_under_another_name() {
    machine 16777216
    zones 10000 150000 160000 4000000
    printf '%s' '{"kind":"KubeletConfiguration","evictionHard":{"memory.available":600000000}}' >"$T/etc/kubernetes/kubelet.conf"
    run virt-swap-watermarks
    is factor 506 "$(content "$(knob)")"
}

the_pull_secret_is_not_taken_for_the_configuration() {
    machine 16777216
    zones 10000 130000 140000 4000000
    printf '%s' '{"auths":{"quay.io":{"auth":"c2VjcmV0"}}}' >"$T/var/lib/kubelet/config.json"
    yaml_config "evictionHard:" "  memory.available: 500Mi"
    run virt-swap-watermarks
    is factor 459 "$(content "$(knob)")"
    silent_about c2VjcmV0
}

config_yaml_comes_before_kubelet_conf() {
    machine 16777216
    zones 10000 130000 140000 4000000
    yaml_config "evictionHard:" "  memory.available: 500Mi"
    mv "$T/etc/kubernetes/kubelet.conf" "$T/var/lib/kubelet/config.yaml"
    yaml_config "evictionHard:" "  memory.available: 1Gi"
    run virt-swap-watermarks
    is factor 459 "$(content "$(knob)")"
}

the_last_drop_in_wins() {
    machine 16777216
    zones 10000 130000 140000 4000000
    yaml_config "evictionHard:" "  memory.available: 300Mi"
    printf 'kind: KubeletConfiguration\nevictionHard:\n  memory.available: 500Mi\n' >"$T/etc/openshift/kubelet.conf.d/50-b.conf"
    printf 'kind: KubeletConfiguration\nevictionHard:\n  memory.available: 1Gi\n' >"$T/etc/openshift/kubelet.conf.d/40-a.conf"
    printf 'kind: KubeletConfiguration\nfailSwapOn: false\n' >"$T/etc/openshift/kubelet.conf.d/90-swap.conf"
    printf 'kind: KubeletConfiguration\nevictionHard:\n  memory.available: 2Gi\n' >"$T/etc/openshift/kubelet.conf.d/99-not-read.yaml"
    run virt-swap-watermarks
    is factor 459 "$(content "$(knob)")"
}

nothing_is_written_when_low_is_high_enough() {
    machine 16777216
    # 373293056 bytes are wanted: 91136 pages less 1. One page less is not enough.
    zones 10000 91136 200000 4000000
    yaml_config
    run virt-swap-watermarks
    is "exit status" 0 "$status"
    is factor untouched "$(content "$(knob)")"
    says 'nothing to do'
    zones 10000 91135 200000 4000000
    run virt-swap-watermarks
    is "factor one page below" 203 "$(content "$(knob)")"
}

the_factor_is_never_below_ten() {
    machine 16777216
    zones 91000 91100 200000 4000000
    yaml_config
    run virt-swap-watermarks
    is "exit status" 0 "$status"
    is factor 10 "$(content "$(knob)")"
    silent_about 'at most'
}

the_factor_is_never_above_a_thousand_and_that_is_told() {
    machine 16777216
    zones 10000 400000 410000 4000000
    yaml_config "evictionHard:" "  memory.available: 1.5Gi"
    run virt-swap-watermarks
    is "exit status" 0 "$status"
    is factor 1000 "$(content "$(knob)")"
    says 'warning: a factor of 1122 is wanted, but the kernel takes 1000 at most: LOW stays 229 MiB short'
}

low_that_stays_below_the_threshold_is_an_error() {
    machine 16777216
    zones 10000 128000 140000 4000000
    yaml_config "evictionHard:" "  memory.available: 500Mi"
    run virt-swap-watermarks
    is "exit status" 1 "$status"
    is factor 459 "$(content "$(knob)")"
    says 'error: LOW (500 MiB) is still not above the eviction threshold (500 MiB)'
}

# A pipe in place of the knob, and this end of it is the kernel: it takes the factor, moves the marks, then gives it back.
marks_are_read_again_after_the_write() {
    machine 16777216
    zones 10000 20000 30000 4000000
    yaml_config "evictionHard:" "  memory.available: 500Mi"
    rm "$(knob)"
    mkfifo "$(knob)"
    (
        read -r factor <"$(knob)"
        zones 10000 $((10000 + 4000000 * factor / 10000)) 400000 4000000
        echo "$factor" >"$(knob)"
    ) &
    kernel=$!
    run virt-swap-watermarks
    kill "$kernel" 2>/dev/null || :
    wait "$kernel" || :
    is "exit status" 0 "$status"
    says 'watermark_scale_factor is 459 now: MIN 39 MiB, LOW 756 MiB'
    silent_about 'warning\|error'
}

a_kernel_that_keeps_its_factor_is_an_error() {
    machine 16777216
    zones 10000 130000 140000 4000000
    yaml_config "evictionHard:" "  memory.available: 500Mi"
    rm "$(knob)"
    mkfifo "$(knob)"
    (
        read -r factor <"$(knob)"
        echo 10 >"$(knob)"
    ) &
    kernel=$!
    run virt-swap-watermarks
    kill "$kernel" 2>/dev/null || :
    wait "$kernel" || :
    is "exit status" 1 "$status"
    says 'wrote 459 to .* but it says 10'
}

min_above_the_threshold_is_told() {
    machine 16777216
    zones 25600 30000 40000 4000000
    yaml_config
    run virt-swap-watermarks
    is "exit status" 0 "$status"
    says 'warning: MIN (100 MiB) is not below the eviction threshold (100 MiB)'
    zones 25599 30000 40000 4000000
    run virt-swap-watermarks
    silent_about 'warning'
}

no_configuration_is_an_error_after_all_tries() {
    machine 16777216
    zones 10000 30000 40000 4000000
    printf '#!/bin/sh\necho "$*" >>"%s.naps"\n' "$T" >"$T/sleep"
    chmod 755 "$T/sleep"
    # Neither a pull secret nor half a file is a configuration.
    printf '%s' '{"auths":{}}' >"$T/var/lib/kubelet/config.json"
    printf '%s' '{"kind":"KubeletConfiguration","evictionHard":{"memory.av' >"$T/etc/kubernetes/kubelet.conf"
    PATH=$T:$PATH TRIES=3 run virt-swap-watermarks
    is "exit status" 1 "$status"
    says 'error: found no kubelet configuration after looking 3 times'
    is factor untouched "$(content "$(knob)")"
    # Nor is one that ends between two fields.
    printf '%s' '{"kind":"KubeletConfiguration","evictionHard":{"memory.available":"1Gi",' >"$T/var/lib/kubelet/config.json"
    TRIES=1 run virt-swap-watermarks
    is "exit status of a later run" 1 "$status"
    says 'after looking 1 times'
    is naps "0 0" "$(tr '\n' ' ' <"$T.naps" | sed 's/ $//')"
}

# The file comes while the script naps.
a_configuration_that_comes_late_is_found() {
    machine 16777216
    zones 10000 130000 140000 4000000
    yaml_config "evictionHard:" "  memory.available: 500Mi"
    mv "$T/etc/kubernetes/kubelet.conf" "$T/late"
    printf '#!/bin/sh\nmv "%s" "%s"\n' "$T/late" "$T/etc/kubernetes/kubelet.conf" >"$T/sleep"
    chmod 755 "$T/sleep"
    PATH=$T:$PATH TRIES=2 run virt-swap-watermarks
    is "exit status" 0 "$status"
    is factor 459 "$(content "$(knob)")"
}

a_threshold_that_makes_no_sense_is_an_error() {
    for nonsense in 5Qi lots 5%%; do
        machine 16777216
        zones 10000 30000 40000 4000000
        yaml_config "evictionHard:" "  memory.available: $nonsense"
        run virt-swap-watermarks
        is "exit status for $nonsense" 1 "$status"
        is "factor for $nonsense" untouched "$(content "$(knob)")"
        says "cannot understand the eviction threshold '$nonsense'"
    done
}

a_machine_with_one_gibibyte() {
    machine 1048576
    # What the kernel makes of a factor of 1000 there: LOW is MIN and a tenth of all pages.
    zones 11264 36264 61264 250000
    yaml_config
    run virt-swap-watermarks
    is "exit status" 0 "$status"
    is factor 1000 "$(content "$(knob)")"
    says 'warning: a factor of .* is wanted, but the kernel takes 1000 at most: LOW stays 214 MiB short'
}

a_machine_with_two_tebibytes() {
    machine 2147483648
    zones 22528 700000 800000 536870912
    yaml_config
    run virt-swap-watermarks
    is "exit status" 0 "$status"
    # One percent and the threshold are 21071 MiB; MIN is 88 MiB of that.
    is factor 101 "$(content "$(knob)")"
    silent_about 'at most'
}

# Node numbers with gaps, a node without memory, a node without CPUs (memory on an expansion card), 64 KiB pages on one of them.
numa_nodes_with_gaps_and_without_memory() {
    machine 16777216
    {
        printf 'Node 0, zone   Normal\n  per-node stats\n      nr_low 9\n  pages free     0\n        min      0\n        low      0\n        high     0\n        managed  0\n'
        printf 'Node 2, zone   Normal\n  pages free     1\n        min      4000\n        low      60000\n        high     70000\n        managed  1000000\n'
        printf 'Node 255, zone  Movable\n  pages free     1\n        min      6000\n        low      70000\n        high     80000\n        managed  3000000\n'
    } >"$T/proc/zoneinfo"
    yaml_config "evictionHard:" "  memory.available: 500Mi"
    run virt-swap-watermarks
    is "exit status" 0 "$status"
    is factor 459 "$(content "$(knob)")"
}

a_second_run_of_watermarks_changes_nothing() {
    machine 16777216
    zones 10000 130000 140000 4000000
    yaml_config "evictionHard:" "  memory.available: 500Mi"
    run virt-swap-watermarks
    is factor 459 "$(content "$(knob)")"
    # What the kernel made of it.
    zones 10000 193600 377200 4000000
    echo untouched >"$(knob)"
    run virt-swap-watermarks
    is "exit status" 0 "$status"
    is "factor after the second run" untouched "$(content "$(knob)")"
}

missing_or_read_only_kernel_files_are_errors() {
    machine 16777216
    zones 10000 130000 140000 4000000
    yaml_config "evictionHard:" "  memory.available: 500Mi"
    frozen "$(knob)"
    run virt-swap-watermarks
    is "exit status with a read-only knob" 1 "$status"
    says 'could not write'
    rm "$T/proc/zoneinfo"
    run virt-swap-watermarks
    is "exit status without zoneinfo" 1 "$status"
    says 'could not read'
    : >"$T/proc/meminfo"
    run virt-swap-watermarks
    is "exit status without MemTotal" 1 "$status"
    says 'has no MemTotal'
}

# --- swap-on ---------------------------------------------------------------------------------------------------------------

SPACE=/dev/disk/by-partlabel/OCPSWAP
# host: a node with a swap partition and a kubelet; kubelet OPTION: its command line.
host() {
    mkdir -p "$T/proc" "$T/dev/disk/by-partlabel" "$T/etc/systemd/system/kubelet.service.d" "$T/etc/kubernetes" "$T/etc/openshift/kubelet.conf.d" "$T/var/tmp"
    printf 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n' >"$T/proc/swaps"
    : >"$T/dev/sda5"
    ln -s ../../sda5 "$T$SPACE"
    printf 'kind: KubeletConfiguration\nfailSwapOn: false\n' >"$T/etc/openshift/kubelet.conf.d/90-swap.conf"
    printf 'kind: KubeletConfiguration\nmaxPods: 250\n' >"$T/etc/kubernetes/kubelet.conf"
    kubelet --config-dir=/etc/openshift/kubelet.conf.d
}
kubelet() { printf '[Service]\n# --config-dir=/etc/openshift/kubelet.conf.d --fail-swap-on=false\nExecStart=/usr/bin/kubelet \\\n    --config=/etc/kubernetes/kubelet.conf \\\n    %s \\\n    --v=2\n' "$*" >"$T/etc/systemd/system/kubelet.service"; }
# swapped PATH PRIORITY, or nothing: what swapon was told.
swapped() { is "what swapon was told" "${1:+--priority $2 $1}" "$(content "$T.swapon")"; }

a_worker_of_openshift_gets_swap() {
    host
    run virt-swap-on "$SPACE" 100
    is "exit status" 0 "$status"
    swapped "$SPACE" 100
}

a_swap_file_is_used_like_a_partition() {
    host
    : >"$T/var/tmp/ocpswap.file"
    run virt-swap-on /var/tmp/ocpswap.file 10
    is "exit status" 0 "$status"
    swapped /var/tmp/ocpswap.file 10
}

a_kubelet_that_reads_no_drop_ins_gets_no_swap() {
    for option in --node-ip=1 --config-dir=/etc/kubernetes/other --config-dir=/etc/openshift/kubelet.conf.d.old; do
        host
        kubelet "$option"
        run virt-swap-on "$SPACE" 100
        is "exit status with $option" 0 "$status"
        swapped
        says 'warning: the kubelet of this node does not read'
        rm -r "$T"
    done
}

a_drop_in_that_is_missing_or_empty_is_none() {
    host
    : >"$T/etc/openshift/kubelet.conf.d/90-swap.conf"
    run virt-swap-on "$SPACE" 100
    swapped
    rm "$T/etc/openshift/kubelet.conf.d/90-swap.conf"
    run virt-swap-on "$SPACE" 100
    swapped
    is "exit status" 0 "$status"
}

a_kubelet_that_accepts_swap_otherwise_gets_it() {
    host
    kubelet --node-ip=1
    printf 'kind: KubeletConfiguration\nfailSwapOn: false\n' >"$T/etc/kubernetes/kubelet.conf"
    run virt-swap-on "$SPACE" 100
    swapped "$SPACE" 100
    rm "$T.swapon"
    printf '{"kind":"KubeletConfiguration",\n  "failSwapOn": false}\n' >"$T/etc/kubernetes/kubelet.conf"
    run virt-swap-on "$SPACE" 100
    swapped "$SPACE" 100
    rm "$T.swapon"
    printf 'kind: KubeletConfiguration\nfailSwapOn: true\n' >"$T/etc/kubernetes/kubelet.conf"
    run virt-swap-on "$SPACE" 100
    swapped
    printf '[Service]\nEnvironment="EXTRA=--fail-swap-on=false"\n' >"$T/etc/systemd/system/kubelet.service.d/50-swap.conf"
    run virt-swap-on "$SPACE" 100
    swapped "$SPACE" 100
}

without_a_swap_partition_nothing_happens() {
    host
    rm "$T$SPACE"
    run virt-swap-on "$SPACE" 100
    is "exit status" 0 "$status"
    swapped
    says 'does not exist; nothing to do'
}

a_second_run_of_swap_on_changes_nothing() {
    host
    printf '/dev/sda5\tpartition\t8388604\t\t0\t\t100\n' >>"$T/proc/swaps"
    run virt-swap-on "$SPACE" 100
    is "exit status" 0 "$status"
    swapped
    says 'is in use already'
    # Another space in use is no reason.
    printf 'Filename Type Size Used Priority\n/dev/sdb1\tpartition\t8388604\t\t0\t\t100\n' >"$T/proc/swaps"
    run virt-swap-on "$SPACE" 100
    swapped "$SPACE" 100
}

a_space_that_is_not_formatted_is_an_error() {
    host
    export SWAPON_STATUS=255
    run virt-swap-on "$SPACE" 100
    unset SWAPON_STATUS
    is "exit status" 1 "$status"
    says 'is it formatted with mkswap'
}

missing_kernel_and_kubelet_files_mean_no_swap() {
    host
    rm -r "${T:?}/etc" "${T:?}/proc"
    run virt-swap-on "$SPACE" 100
    is "exit status" 0 "$status"
    swapped
}

# --- ksm -------------------------------------------------------------------------------------------------------------------

KSM=sys/kernel/mm/ksm
# merging KIB: a kernel that can merge zero pages only, on a machine with that much memory.
merging() {
    mkdir -p "$T/proc" "$T/$KSM" "$T/sys/kernel/mm/transparent_hugepage/khugepaged"
    printf 'MemTotal:       %s kB\nMemFree:        1 kB\n' "$1" >"$T/proc/meminfo"
    echo 0 >"$T/$KSM/run"
    echo 0 >"$T/$KSM/redhat_only_zero_pages"
    echo 100 >"$T/$KSM/pages_to_scan"
    echo 20 >"$T/$KSM/sleep_millisecs"
    echo 511 >"$T/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none"
}
# merges RUN SWITCH PAGES PAUSE NONE
merges() {
    is run "$1" "$(content "$T/$KSM/run")"
    is switch "$2" "$(content "$T/$KSM/redhat_only_zero_pages")"
    is pages_to_scan "$3" "$(content "$T/$KSM/pages_to_scan")"
    is sleep_millisecs "$4" "$(content "$T/$KSM/sleep_millisecs")"
    is max_ptes_none "$5" "$(content "$T/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none")"
}

zero_pages_are_merged_at_a_pace_that_fits_the_memory() {
    # KiB, ms: one gibibyte, 64 and 512 GiB as the kernel shows them, 768 GiB, one and two tebibytes, four.
    for size in 1006000:50 65800000:50 528000000:50 805306368:33 1073741824:25 2147483648:12 4294967296:10; do
        merging "${size%:*}"
        run virt-ksm-zero-only
        is "exit status for $size" 0 "$status"
        merges 1 1 1000 "${size#*:}" 0
        silent_about 'warning\|error'
    done
}

without_the_switch_ksm_is_never_started() {
    merging 65800000
    rm "$T/$KSM/redhat_only_zero_pages"
    run virt-ksm-zero-only
    is "exit status" 0 "$status"
    merges 0 "" 100 20 511
    says 'cannot restrict KSM to zero pages .* KSM is not started'
    silent_about warning
    # Running already, by somebody else: left alone, and told.
    echo 1 >"$T/$KSM/run"
    run virt-ksm-zero-only
    is "exit status" 0 "$status"
    merges 1 "" 100 20 511
    says 'warning: KSM runs already'
}

a_switch_that_does_not_take_means_no_ksm() {
    merging 65800000
    frozen "$T/$KSM/redhat_only_zero_pages"
    run virt-ksm-zero-only
    is "exit status" 1 "$status"
    is run 0 "$(content "$T/$KSM/run")"
    says 'error: could not restrict KSM'
}

# A pipe in place of a file; this end of it takes the switch back while the script is at work.
a_switch_that_is_taken_back_means_no_ksm() {
    merging 65800000
    rm "$T/$KSM/pages_to_scan"
    mkfifo "$T/$KSM/pages_to_scan"
    (
        read -r pages <"$T/$KSM/pages_to_scan"
        echo 0 >"$T/$KSM/redhat_only_zero_pages"
        echo "$pages" >"$T/$KSM/pages_to_scan"
    ) &
    other=$!
    run virt-ksm-zero-only
    kill "$other" 2>/dev/null || :
    wait "$other" || :
    is "exit status" 1 "$status"
    is run 0 "$(content "$T/$KSM/run")"
    says 'was taken back; KSM is not started'
}

a_kernel_without_ksm_is_left_alone() {
    mkdir -p "$T/proc"
    run virt-ksm-zero-only
    is "exit status" 0 "$status"
    says 'has no KSM'
    is "files written" "" "$(find "$T" -type f)"
}

full_merging_that_went_on_before_is_restricted_and_told() {
    merging 65800000
    echo 1 >"$T/$KSM/run"
    run virt-ksm-zero-only
    is "exit status" 0 "$status"
    merges 1 1 1000 50 0
    says 'warning: KSM ran before'
}

a_second_run_of_ksm_changes_nothing() {
    merging 65800000
    run virt-ksm-zero-only
    run virt-ksm-zero-only
    is "exit status" 0 "$status"
    merges 1 1 1000 50 0
    silent_about 'warning\|error'
}

lesser_ksm_files_that_are_missing_or_read_only_are_told() {
    merging 65800000
    frozen "$T/$KSM/pages_to_scan"
    rm "$T/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none"
    : >"$T/proc/meminfo"
    run virt-ksm-zero-only
    is "exit status" 0 "$status"
    is run 1 "$(content "$T/$KSM/run")"
    is sleep_millisecs 50 "$(content "$T/$KSM/sleep_millisecs")"
    says 'warning: could not set .*pages_to_scan'
    says 'warning: .*no MemTotal'
}

ksm_that_cannot_be_started_is_an_error() {
    merging 65800000
    frozen "$T/$KSM/run"
    run virt-ksm-zero-only
    is "exit status" 1 "$status"
    says 'error: could not start KSM'
}

# --- thp -------------------------------------------------------------------------------------------------------------------

THP=sys/kernel/mm/transparent_hugepage
# huge KIB CHOICES
huge() {
    mkdir -p "$T/proc" "$T/$THP/khugepaged"
    printf 'MemTotal:       %s kB\n' "$1" >"$T/proc/meminfo"
    echo "$2" >"$T/$THP/enabled"
    echo 4096 >"$T/$THP/khugepaged/pages_to_scan"
    echo 10000 >"$T/$THP/khugepaged/scan_sleep_millisecs"
    echo 511 >"$T/$THP/khugepaged/max_ptes_none"
}

huge_pages_at_a_pace_that_fits_the_memory() {
    for size in 1006000:65000 65800000:2015 528000000:1126 1073741824:1062 2147483648:1031; do
        huge "${size%:*}" '[always] madvise never'
        run virt-thp-tuning
        is "exit status for $size" 0 "$status"
        is enabled madvise "$(content "$T/$THP/enabled")"
        is pages_to_scan 130000 "$(content "$T/$THP/khugepaged/pages_to_scan")"
        is "pause for $size" "${size#*:}" "$(content "$T/$THP/khugepaged/scan_sleep_millisecs")"
        # That one belongs to virt-ksm-zero-only.
        is max_ptes_none 511 "$(content "$T/$THP/khugepaged/max_ptes_none")"
        silent_about 'warning\|error'
    done
}

madvise_that_is_chosen_already_is_not_written_again() {
    huge 65800000 'always [madvise] never'
    run virt-thp-tuning
    is "exit status" 0 "$status"
    is enabled 'always [madvise] never' "$(content "$T/$THP/enabled")"
    run virt-thp-tuning
    is "exit status of the second run" 0 "$status"
    is "pause after the second run" 2015 "$(content "$T/$THP/khugepaged/scan_sleep_millisecs")"
}

a_kernel_without_huge_pages_is_left_alone() {
    mkdir -p "$T/proc"
    run virt-thp-tuning
    is "exit status" 0 "$status"
    says 'has no transparent huge pages'
}

huge_page_files_that_are_missing_are_passed_over() {
    huge 65800000 'always [madvise] never'
    rm "$T/$THP/khugepaged/pages_to_scan"
    run virt-thp-tuning
    is "exit status" 0 "$status"
    says 'warning: .*pages_to_scan does not exist'
    is pause 2015 "$(content "$T/$THP/khugepaged/scan_sleep_millisecs")"
    rm "$T/proc/meminfo"
    run virt-thp-tuning
    is "exit status without meminfo" 1 "$status"
    says 'no MemTotal'
}

huge_page_files_that_are_read_only_are_told() {
    huge 65800000 'always [madvise] never'
    frozen "$T/$THP/enabled"
    frozen "$T/$THP/khugepaged/pages_to_scan"
    run virt-thp-tuning
    is "exit status" 1 "$status"
    says 'warning: could not set .*enabled to madvise'
    says 'warning: could not set .*pages_to_scan'
    is pause 2015 "$(content "$T/$THP/khugepaged/scan_sleep_millisecs")"
}

# --- io-latency ------------------------------------------------------------------------------------------------------------

# A tree without block devices.
computer() {
    mkdir -p "$T/proc/self" "$T/sys/class/block" "$T/sys/dev/block" "$T/sys/devices" "$T/dev/disk/by-partlabel" "$T/dev/mapper" "$T/run"
    printf 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n' >"$T/proc/swaps"
    printf '22 1 0:21 / /proc rw,nosuid shared:5 - proc proc rw\n' >"$T/proc/self/mountinfo"
}
# block NAME FOLDER MAJOR:MINOR: a device, with its folder below /sys/devices, its node and its links.
block() {
    mkdir -p "$T/sys/devices/$2/$1"
    ln -s "../../devices/$2/$1" "$T/sys/class/block/$1"
    ln -s "../../devices/$2/$1" "$T/sys/dev/block/$3"
    node=$T/dev/$(echo "$1" | tr '!' /)
    mkdir -p "$(dirname "$node")"
    : >"$node"
}
disk() { block "$1" "pci/$1-controller" "$2"; mkdir "$T/sys/devices/pci/$1-controller/$1/slaves"; }
partition() { block "$2" "pci/$1-controller/$1" "$3"; echo 1 >"$T/sys/devices/pci/$1-controller/$1/$2/partition"; }
# mapped NAME MAJOR:MINOR BELOW...: a device made of others (LVM, LUKS, multipath), or of none.
mapped() {
    block "$1" virtual/block "$2"
    mapped=$1
    mkdir "$T/sys/devices/virtual/block/$1/slaves"
    shift 2
    for below; do
        ln -s "$(readlink -f "$T/sys/class/block/$below")" "$T/sys/devices/virtual/block/$mapped/slaves/$below"
    done
}
swap_on() { printf '%s\t%s\t\t8388604\t\t0\t\t100\n' "$1" "$2" >>"$T/proc/swaps"; }
# Swap space without a disk.
zram_swap() { block zram0 virtual/block 251:0; swap_on /dev/zram0 partition; }
mounted() { printf '30 1 %s / %s rw,relatime shared:1 master:2 - %s %s rw\n' "$1" "$2" "$3" "$4" >>"$T/proc/self/mountinfo"; }
drop_in() { content "$T/run/systemd/system/$1.slice.d/20-io-latency.conf"; }
# targets DISK...: both drop-ins, to the byte, name exactly these disks, and nothing else was left there.
targets() {
    is "exit status" 0 "$status"
    for slice in system:5ms kubepods:50ms; do
        printf '# Written by virt-swap-io-latency.\n[Slice]\n' >"$T.expected"
        for each; do printf 'IODeviceLatencyTargetSec=%s %s\n' "$each" "${slice#*:}"; done >>"$T.expected"
        cmp -s "$T.expected" "$T/run/systemd/system/${slice%:*}.slice.d/20-io-latency.conf" || fault "drop-in of ${slice%:*}: expected
$(cat "$T.expected")
got
$(drop_in "${slice%:*}")"
    done
    is "files written" "20-io-latency.conf 20-io-latency.conf " "$(cd "$T/run" && find . -type f | sed 's,.*/,,' | tr '\n' ' ')"
}

a_swap_partition_on_nvme() {
    computer
    disk nvme0n1 259:0
    partition nvme0n1 nvme0n1p5 259:5
    swap_on /dev/nvme0n1p5 partition
    run virt-swap-io-latency
    targets /dev/nvme0n1
}

a_swap_partition_on_another_disk_than_root() {
    computer
    disk sda 8:0
    partition sda sda4 8:4
    disk sdb 8:16
    partition sdb sdb1 8:17
    swap_on /dev/sdb1 partition
    mounted 8:4 / xfs /dev/sda4
    run virt-swap-io-latency
    targets /dev/sda /dev/sdb
}

root_and_swap_on_one_disk_are_named_once() {
    computer
    disk sda 8:0
    partition sda sda4 8:4
    partition sda sda5 8:5
    swap_on /dev/sda5 partition
    mounted 8:4 / xfs /dev/sda4
    run virt-swap-io-latency
    targets /dev/sda
}

links_to_a_swap_partition_are_followed() {
    computer
    disk sda 8:0
    partition sda sda5 8:5
    ln -s ../../sda5 "$T/dev/disk/by-partlabel/OCPSWAP"
    swap_on /dev/disk/by-partlabel/OCPSWAP partition
    run virt-swap-io-latency
    targets /dev/sda
}

a_whole_disk_as_swap() {
    computer
    disk vdb 252:16
    swap_on /dev/vdb partition
    run virt-swap-io-latency
    targets /dev/vdb
}

lvm_over_luks_over_partitions_of_two_disks() {
    computer
    disk sda 8:0
    partition sda sda2 8:2
    disk nvme1n1 259:8
    partition nvme1n1 nvme1n1p1 259:9
    mapped dm-0 253:0 sda2
    mapped dm-1 253:1 dm-0 nvme1n1p1
    ln -s ../dm-1 "$T/dev/mapper/vg-swap"
    swap_on /dev/mapper/vg-swap partition
    run virt-swap-io-latency
    targets /dev/nvme1n1 /dev/sda
}

root_on_lvm_over_multipath() {
    computer
    zram_swap
    disk sda 8:0
    disk sdb 8:16
    mapped dm-0 253:0 sda sdb
    # A partition of a multipath device is a mapped device itself.
    mapped dm-1 253:1 dm-0
    mounted 253:1 / xfs /dev/mapper/rhel-root
    run virt-swap-io-latency
    targets /dev/sda /dev/sdb
}

nvme_behind_a_virtual_subsystem_is_physical() {
    computer
    block nvme0n1 virtual/nvme-subsystem/nvme-subsys0 259:0
    swap_on /dev/nvme0n1 partition
    run virt-swap-io-latency
    targets /dev/nvme0n1
}

the_disk_of_a_swap_file_counts() {
    computer
    disk sda 8:0
    partition sda sda4 8:4
    disk sdb 8:16
    partition sdb sdb1 8:17
    mounted 8:4 / xfs /dev/sda4
    mounted 8:17 /var/tmp xfs /dev/sdb1
    swap_on /var/tmp/ocpswap.file file
    run virt-swap-io-latency
    targets /dev/sda /dev/sdb
}

a_swap_file_on_the_root_file_system_adds_nothing() {
    computer
    disk sda 8:0
    partition sda sda4 8:4
    disk sdb 8:16
    partition sdb sdb1 8:17
    mounted 8:4 / xfs /dev/sda4
    # Neither its parent nor what begins like it is the place of the file.
    mounted 8:17 /var/tmp/deeper xfs /dev/sdb1
    mounted 8:17 /var/tmpfiles xfs /dev/sdb1
    swap_on /var/tmp/ocpswap.file file
    # A file of that type whose name is a device's must be passed over for its type.
    swap_on /dev/sdb1 file
    run virt-swap-io-latency
    targets /dev/sda
}

a_swap_file_on_encrypted_lvm_in_a_place_with_a_blank() {
    computer
    disk sda 8:0
    partition sda sda4 8:4
    disk nvme0n1 259:0
    mapped dm-3 253:3 nvme0n1
    mounted 8:4 / xfs /dev/sda4
    mounted 253:3 '/var/my\040disk' xfs /dev/mapper/x
    swap_on '/var/my\040disk/swap\040file' file
    run virt-swap-io-latency
    targets /dev/nvme0n1 /dev/sda
}

without_swap_space_no_disk_gets_a_target() {
    computer
    disk sda 8:0
    partition sda sda4 8:4
    mounted 8:4 / xfs /dev/sda4
    run virt-swap-io-latency
    is "exit status" 0 "$status"
    says 'no swap space is in use'
    rm "$T/proc/swaps"
    run virt-swap-io-latency
    is "exit status without the file" 0 "$status"
    is "files written" "" "$(find "$T/run" -type f)"
}

compressed_ram_and_loops_are_passed_over() {
    computer
    block zram0 virtual/block 251:0
    block loop0 virtual/block 7:0
    disk sda 8:0
    partition sda sda4 8:4
    swap_on /dev/zram0 partition
    swap_on /dev/loop0 partition
    mounted 8:4 / xfs /dev/sda4
    run virt-swap-io-latency
    targets /dev/sda
}

without_disks_there_is_a_warning_and_no_error() {
    computer
    block zram0 virtual/block 251:0
    mapped dm-7 253:7
    swap_on /dev/zram0 partition
    swap_on /dev/dm-7 partition
    mounted 0:40 / overlay overlay
    run virt-swap-io-latency
    is "exit status" 0 "$status"
    says 'warning: found no physical disk'
    is "files written" "" "$(find "$T/run" -type f)"
}

an_unknown_swap_device_is_told_and_passed_over() {
    computer
    disk sda 8:0
    partition sda sda4 8:4
    mounted 8:4 / xfs /dev/sda4
    swap_on /dev/gone1 partition
    run virt-swap-io-latency
    says 'warning: gone1 is not a block device'
    targets /dev/sda
}

the_last_mount_of_root_counts() {
    computer
    zram_swap
    disk sda 8:0
    partition sda sda4 8:4
    disk sdb 8:16
    partition sdb sdb1 8:17
    mounted 8:4 / xfs /dev/sda4
    mounted 8:17 / xfs /dev/sdb1
    mounted 8:4 /boot xfs /dev/sda4
    mounted 8:4 /sysroot xfs /dev/sda4
    run virt-swap-io-latency
    targets /dev/sdb
}

root_as_an_overlay_is_found_through_sysroot() {
    computer
    zram_swap
    disk nvme0n1 259:0
    partition nvme0n1 nvme0n1p4 259:4
    mounted 0:35 / overlay composefs
    mounted 259:4 /sysroot xfs /dev/nvme0n1p4
    run virt-swap-io-latency
    targets /dev/nvme0n1
}

root_with_a_number_of_its_own_is_found_by_its_source() {
    computer
    zram_swap
    disk sda 8:0
    partition sda sda3 8:3
    mounted 0:33 / btrfs /dev/sda3
    run virt-swap-io-latency
    targets /dev/sda
}

a_slash_in_a_device_name_survives_sysfs() {
    computer
    disk 'cciss!c0d0' 104:0
    partition 'cciss!c0d0' 'cciss!c0d0p2' 104:2
    swap_on /dev/cciss/c0d0p2 partition
    run virt-swap-io-latency
    targets /dev/cciss/c0d0
}

a_second_run_changes_nothing_and_a_new_disk_is_added() {
    computer
    disk sda 8:0
    partition sda sda5 8:5
    swap_on /dev/sda5 partition
    run virt-swap-io-latency
    targets /dev/sda
    for slice in system kubepods; do
        touch -d '2001-01-01 00:00:00' "$T/run/systemd/system/$slice.slice.d/20-io-latency.conf"
    done
    run virt-swap-io-latency
    targets /dev/sda
    says 'is up to date'
    is "files written again" "" "$(find "$T/run" -type f -newermt 2002-01-01)"
    disk sdb 8:16
    swap_on /dev/sdb partition
    run virt-swap-io-latency
    targets /dev/sda /dev/sdb
}

systemd_is_left_alone_on_a_made_up_tree() {
    computer
    disk sda 8:0
    swap_on /dev/sda partition
    run virt-swap-io-latency
    targets /dev/sda
    [ ! -e "$work/systemctl-was-called" ] || fault "systemctl was called"
}

# --- the template ----------------------------------------------------------------------------------------------------------

the_template_says_what_it_must() {
    python3 - "$template" "$pack/active" >"$T.out" 2>&1 <<'END' || fault "the template is not as it must be"
import configparser, os, re, sys
from urllib.parse import unquote

text, pack = open(sys.argv[1]).read(), sys.argv[2]
wrong = []
def must(truth, what):
    if not truth:
        wrong.append(what)

# Files: path -> (mode, compression, source).
files = {}
for path, rest in re.findall(r"^ +- path: (\S+)\n((?: {10,}.*\n)+)", text, re.M):
    files[path] = {key: value for key, value in re.findall(r"^ +(mode|compression|source): (.*)$", rest, re.M)}
conf = files.pop("/etc/openshift/kubelet.conf.d/90-swap.conf", {})
must(conf.get("mode") == "0644", "mode of 90-swap.conf")
must(unquote(conf.get("source", "")) == "data:,apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
     "failSwapOn: false\nmemorySwap:\n  swapBehavior: LimitedSwap\n", "content of 90-swap.conf")
must(sorted(files) == ["/usr/local/bin/virt-swap-io-latency", "/usr/local/bin/virt-swap-on", "/usr/local/bin/virt-swap-watermarks"], f"files: {sorted(files)}")
for path, file in files.items():
    script = f"scripts/{os.path.basename(path)}.sh"
    must(file.get("mode") == "0755" and file.get("compression") == "gzip", f"mode and compression of {path}")
    must(file.get("source") == 'data:;base64,{{ readAsset "%s" | gzip | b64enc }}' % script, f"source of {path}")
    must(open(f"{pack}/{script}").readline() == "#!/bin/sh\n", f"first line of {script}")

# Units: every block of text under a name.
units = {}
def parse(name, body):
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters="=")
    parser.optionxform = str
    parser.read_string(re.sub("^ +", "", body, flags=re.M))
    units[name] = {section: dict(parser[section]) for section in parser.sections()}
for name, body in re.findall(r"^ +- name: (\S+\.service)\n +enabled: true\n +contents: \|\n((?: {12}.*\n|\n)+)", text, re.M):
    parse(name, body)
for name, body in re.findall(r"^ +- name: (\S+\.slice)\n +dropins:\n +- name: \S+\.conf\n +contents: \|\n((?: {16}.*\n)+)", text, re.M):
    parse(name, body)
must(len(units) == 9 and len(re.findall(r"^        - name:", text, re.M)) == 9, f"units: {sorted(units)}")
must(units.pop("system.slice", 0) == {"Slice": {"MemorySwapMax": "0", "IOWeight": "800", "CPUWeight": "800"}}, "system.slice")
must(units.pop("kubepods.slice", 0) == {"Slice": {"IOWeight": "100"}}, "kubepods.slice")
first = {}
for name, unit in units.items():
    must(set(unit) == {"Unit", "Service", "Install"} and unit["Service"]["Type"] == "oneshot", f"{name} is a oneshot")
    must("RequiredBy" not in unit["Install"], f"{name} can keep the kubelet down")
    must("TimeoutStartSec" in unit["Service"], f"{name} can hang for ever")
    first[name] = unit["Install"]["WantedBy"] == "kubelet-dependencies.target"
    must(first[name] == (unit["Unit"].get("Before") == "kubelet-dependencies.target"), f"{name} comes before the kubelet or does not")
spaces = (("partition", "/dev/disk/by-partlabel/OCPSWAP", 100), ("cnv-partition", "/dev/disk/by-partlabel/CNV_SWAP", 100), ("file", "/var/tmp/ocpswap.file", 10))
for name, path, priority in spaces:
    unit = units[f"virt-swap-{name}.service"]
    must(first[f"virt-swap-{name}.service"], f"swap {name} before the kubelet")
    must(unit["Unit"].get("ConditionPathExists") == path and unit["Unit"].get("ConditionFirstBoot") == "no", f"conditions of {name}")
    must(unit["Service"]["ExecStart"] == f"/usr/local/bin/virt-swap-on {path} {priority}", f"command of {name}")
for name in ("watermarks", "io-latency"):
    must(units[f"virt-swap-{name}.service"]["Service"]["ExecStart"] in files, f"{name} runs a file that is there")
must("kubelet.service" in units["virt-swap-watermarks.service"]["Unit"]["After"].split(), "watermarks after the kubelet")
must({"local-fs.target", "swap.target"} | {f"virt-swap-{name}.service" for name, _, _ in spaces} <= set(units["virt-swap-io-latency.service"]["Unit"]["After"].split()), "io-latency after swap")
must("version: 3.2.0\n" in text, "Ignition 3.2.0")
print("\n".join(wrong))
sys.exit(bool(wrong))
END
}

every_template_is_safe_for_the_kubelet() {
    python3 - "$pack/active" >"$T.out" 2>&1 <<'END' || fault "a template is not as it must be"
import glob, os, re, sys

pack, wrong, scripts = sys.argv[1], [], set()
for path in sorted(glob.glob(f"{pack}/machine-config/*.tpl")):
    text, name = open(path).read(), os.path.basename(path)
    def must(truth, what):
        if not truth:
            wrong.append(f"{name}: {what}")
    must(text.startswith("{{- if .Topology.IsHCP }}{{ notApplicable "), "hosted control planes come first")
    must(re.findall(r"version: (\S+)", text) == ["3.2.0"], "Ignition 3.2.0")
    must("RequiredBy" not in text, "RequiredBy")
    must(all(mode in ("0644", "0755") for mode in re.findall(r"mode: (\S+)", text)), "modes")
    must(text.count("mode: ") == text.count("- path: ") == text.count("overwrite: true"), "every file has a mode and overwrites")
    # A daemon does not end, but stopping it must.
    once, daemons = text.count("Type=oneshot"), text.count("Type=simple")
    must(once == text.count("TimeoutStartSec=") and daemons == text.count("TimeoutStopSec="), "every unit has a time limit")
    must(once + daemons == text.count("ExecStart="), "every unit has a type")
    found = re.findall(r'readAsset "(scripts/\S+)"', text)
    scripts |= set(found)
    for script in found:
        must(f"- path: /usr/local/bin/{os.path.basename(script)[:-3]}\n" in text, f"place of {script}")
unused = {f"scripts/{os.path.basename(path)}" for path in glob.glob(f"{pack}/scripts/*.sh")} - scripts
# Scripts of other assets may lie there; those of this pack begin like this.
for script in sorted(unused):
    if re.match(r"scripts/virt-(swap|ksm|thp)", script):
        wrong.append(f"{script} is in no template")
print("\n".join(wrong))
sys.exit(bool(wrong))
END
}

the_clean_up_takes_the_hook_and_nothing_else() {
    mkdir -p "$T/run/containers/oci/hooks.d" "$T/opt"
    for file in run/containers/oci/hooks.d/swap-for-burstable.json run/containers/oci/hooks.d/swap-for-burstable-wasp-agent-abc12.json \
        run/containers/oci/hooks.d/swap-for-others.json opt/oci-hook-swap.sh opt/oci-hook-swap-wasp-agent-abc12.sh opt/other.sh; do
        : >"$T/$file"
    done
    # What the units run, on the made-up tree.
    sed -n "s/^ *ExecStart=\/bin\/sh -c '\(rm .*\)'\$/\1/p" "$template" | sed "s, /, $T/,g" >"$T.commands"
    is "clean-up commands" 2 "$(grep -c . "$T.commands")"
    "$shell" -eu "$T.commands"
    is "what is left" "./opt/other.sh ./run/containers/oci/hooks.d/swap-for-others.json " "$(cd "$T" && find . -type f | sort | tr '\n' ' ')"
}

# ---------------------------------------------------------------------------------------------------------------------------

# Every function named like a sentence that stands alone on its line in this file is a case.
cases=$(sed -n '/^# --- watermarks/,$ s/^\([a-z0-9]*_[a-z0-9_]*_[a-z0-9_]*\)() {.*/\1/p' "$0")
shells=0
for shell in dash bash; do
    command -v "$shell" >/dev/null || continue
    shells=$((shells + 1))
    for case in $cases; do check "$case"; done
done
[ "$shells" -gt 0 ] || { failed=1; echo "FAILED  neither dash nor bash is installed"; }

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
