#!/bin/sh
# Raises the kernel's memory watermarks so that swapping begins before the kubelet evicts.
#
# The kernel wakes kswapd, which swaps, when free memory falls below the LOW watermark, and stalls allocations below MIN. The
# kubelet evicts pods when available memory falls below evictionHard "memory.available". On large machines LOW is far below
# that threshold, so that virtual machines would be evicted before a single page was swapped. Wanted is
# HIGH > LOW > eviction threshold > MIN; the knob is vm.watermark_scale_factor (ten-thousandths of memory between the marks).
#
# Variables: ROOT (prefix of every path, for tests), TRIES and WAIT (how often and how many seconds apart the kubelet's
# configuration is looked for), PAGE_SIZE (bytes; asked of the system when unset).
set -eu
export LC_ALL=C

ROOT=${ROOT:-}
TRIES=${TRIES:-5}
WAIT=${WAIT:-10}
PAGE_SIZE=${PAGE_SIZE:-$(getconf PAGESIZE)}

MIB=1048576
DEFAULT_EVICTION=100Mi
SMALLEST_FACTOR=10
LARGEST_FACTOR=1000
KNOB=$ROOT/proc/sys/vm/watermark_scale_factor
DROP_INS=$ROOT/etc/openshift/kubelet.conf.d

say() { printf 'virt-swap-watermarks: %s\n' "$*"; }
warn() { printf 'virt-swap-watermarks: warning: %s\n' "$*" >&2; }
die() { printf 'virt-swap-watermarks: error: %s\n' "$*" >&2; exit 1; }
in_mib() { echo "$(($1 / MIB)) MiB"; }

# Prints evictionHard "memory.available" of a kubelet configuration, JSON or YAML, or nothing when it is not set there. Fails
# when the file is no complete KubeletConfiguration: on OpenShift /var/lib/kubelet/config.json holds logins of registries.
eviction_in() {
    awk '
        function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
        function bare(s,  first) {
            s = trim(s); first = substr(s, 1, 1)
            if (length(s) > 1 && (first == "\"" || first == "\047") && substr(s, length(s)) == first) return substr(s, 2, length(s) - 2)
            return s == "null" || s == "~" ? "" : s
        }
        # Text up to a comment; a # within quotes, or glued to a word, begins none.
        function code(s,  i, c, quote) {
            for (i = 1; i <= length(s); i++) {
                c = substr(s, i, 1)
                if (quote != "") { if (c == quote) quote = "" }
                else if (c == "\"" || c == "\047") quote = c
                else if (c == "#" && (i == 1 || substr(s, i - 1, 1) ~ /[ \t]/)) return substr(s, 1, i - 1)
            }
            return s
        }
        # Splits "field: value" into the variables field and rest.
        function split_pair(s,  at) {
            at = index(s, ":")
            if (at == 0) { field = ""; rest = ""; return }
            field = bare(substr(s, 1, at - 1)); rest = trim(substr(s, at + 1))
        }
        function flow_map(s,  n, i, pairs) {
            sub(/^[ \t]*[{]/, "", s); sub(/[}].*$/, "", s)
            n = split(s, pairs, ",")
            for (i = 1; i <= n; i++) { split_pair(pairs[i]); if (field == "memory.available") found = bare(rest) }
        }
        function yaml(  i, s, inside, indent, flow) {
            for (i = 1; i <= lines; i++) {
                s = code(line[i])
                if (trim(s) == "") continue
                if (flow != "") { flow = flow " " s; if (s ~ /[}]/) { flow_map(flow); flow = "" }; continue }
                match(s, /^ */)
                if (RLENGTH == 0) {
                    split_pair(s); inside = field == "evictionHard"; indent = 0
                    if (field == "kind") kind = bare(rest)
                    if (inside) found = ""
                    if (inside && substr(rest, 1, 1) == "{") { if (rest ~ /[}]/) flow_map(rest); else flow = rest }
                } else if (inside) {
                    if (indent == 0) indent = RLENGTH
                    split_pair(s)
                    if (RLENGTH == indent && field == "memory.available") found = bare(rest)
                }
            }
            return flow == ""
        }
        function value(v) {
            if (depth == 1 && name[1] == "kind") kind = v
            if (depth == 2 && name[1] == "evictionHard" && name[2] == "memory.available") found = v
        }
        function json(s,  i, n, c, word) {
            n = length(s)
            for (i = 1; i <= n; i++) {
                c = substr(s, i, 1)
                if (c == "{" || c == "[") name[++depth] = ""
                else if (c == "}" || c == "]") { if (--depth < 0) return 0 }
                else if (c == ",") name[depth] = ""
                else if (c == "\"") {
                    word = ""
                    while (++i <= n && (c = substr(s, i, 1)) != "\"") { if (c == "\\") c = substr(s, ++i, 1); word = word c }
                    if (match(substr(s, i + 1), /^[ \t\n]*:/)) { name[depth] = word; i += RLENGTH } else value(word)
                } else if (c !~ /[ \t\n]/) {
                    match(substr(s, i), /^[^],} \t\n]+/)
                    if (RLENGTH < 1) return 0
                    value(bare(substr(s, i, RLENGTH))); i += RLENGTH - 1
                }
            }
            return depth == 0
        }
        { sub(/\r$/, ""); line[++lines] = $0; text = text $0 "\n" }
        END {
            whole = text ~ /^[ \t\n]*[{]/ ? json(text) : yaml()
            if (!whole || kind != "KubeletConfiguration") exit 1
            print found
        }
    ' "$1"
}

# Finds the kubelet's configuration and sets `config` and `eviction`; drop-ins, in order of their names, win over it.
find_eviction() {
    for config in "$ROOT/var/lib/kubelet/config.json" "$ROOT/var/lib/kubelet/config.yaml" "$ROOT/etc/kubernetes/kubelet.conf"; do
        if [ -s "$config" ] && eviction=$(eviction_in "$config"); then
            for drop_in in "$DROP_INS"/*.conf; do
                [ -s "$drop_in" ] || continue
                if other=$(eviction_in "$drop_in"); then
                    [ -z "$other" ] || { eviction=$other; config=$drop_in; }
                else
                    warn "$drop_in is no kubelet configuration; it is passed over"
                fi
            done
            return 0
        fi
    done
    return 1
}

# Prints a quantity in bytes; a share (5%) is one of all memory.
in_bytes() {
    awk -v text="$1" -v total="$2" 'BEGIN {
        n = split("k M G T P E", small, " "); split("Ki Mi Gi Ti Pi Ei", big, " ")
        unit[""] = 1; unit["%"] = total / 100
        thousands = 1; kibis = 1
        for (i = 1; i <= n; i++) { unit[small[i]] = thousands *= 1000; unit[big[i]] = kibis *= 1024 }
        if (!match(text, /^([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?/)) exit 1
        number = substr(text, 1, RLENGTH); suffix = substr(text, RLENGTH + 1)
        if (!(suffix in unit)) exit 1
        # The small addition undoes what 0.07 * 100 loses in binary.
        bytes = number * unit[suffix] + 0.001
        printf "%.0f\n", bytes - bytes % 1
    }'
}

# Sets min, low, high and managed: bytes, summed over all zones.
read_zones() {
    zones=$(awk -v page="$PAGE_SIZE" '
        NF == 2 && ($1 == "min" || $1 == "low" || $1 == "high" || $1 == "managed") { sum[$1] += $2 }
        END { printf "%.0f %.0f %.0f %.0f\n", sum["min"] * page, sum["low"] * page, sum["high"] * page, sum["managed"] * page }
    ' "$ROOT/proc/zoneinfo") || die "could not read $ROOT/proc/zoneinfo"
    read -r min low high managed <<END_OF_ZONES
$zones
END_OF_ZONES
    [ "$managed" -gt 0 ] || die "$ROOT/proc/zoneinfo names no managed page"
}

# Without swap space this node is left as it is.
if ! awk 'NR > 1 { found = 1 } END { exit !found }' "$ROOT/proc/swaps" 2>/dev/null; then
    say "no swap space is in use; nothing to do"
    exit 0
fi

attempt=1
until find_eviction; do
    [ "$attempt" -lt "$TRIES" ] || die "found no kubelet configuration after looking $attempt times; the watermarks stay as they are"
    attempt=$((attempt + 1))
    sleep "$WAIT"
done
if [ -z "$eviction" ]; then
    eviction=$DEFAULT_EVICTION
    say "$config sets no hard eviction threshold for memory; taking the kubelet's default, $eviction"
fi

total=$(awk '$1 == "MemTotal:" { printf "%.0f\n", $2 * 1024 }' "$ROOT/proc/meminfo")
[ -n "$total" ] || die "$ROOT/proc/meminfo has no MemTotal"
threshold=$(in_bytes "$eviction" "$total") || die "$config: cannot understand the eviction threshold '$eviction'"

read_zones
margin=$((total / 100))
[ "$margin" -ge $((256 * MIB)) ] || margin=$((256 * MIB))
target=$((threshold + margin))
say "eviction below $(in_mib "$threshold"), MIN $(in_mib "$min"), LOW $(in_mib "$low"), HIGH $(in_mib "$high"), wanted LOW $(in_mib "$target")"

if [ "$min" -ge "$threshold" ]; then
    warn "MIN ($(in_mib "$min")) is not below the eviction threshold ($(in_mib "$threshold")): allocations stall before the kubelet evicts; lower vm.min_free_kbytes or raise evictionHard memory.available"
fi
if [ "$low" -ge "$target" ]; then
    say "LOW is high enough; nothing to do"
    exit 0
fi

# Rounded up: rounded down, LOW would end just short of what is wanted.
factor=$((((target - min) * 10000 + managed - 1) / managed))
wanted=$factor
[ "$factor" -ge "$SMALLEST_FACTOR" ] || factor=$SMALLEST_FACTOR
[ "$factor" -le "$LARGEST_FACTOR" ] || factor=$LARGEST_FACTOR

echo "$factor" >"$KNOB" || die "could not write $KNOB"
kept=$(cat "$KNOB")
[ "$kept" = "$factor" ] || die "wrote $factor to $KNOB, but it says $kept"

read_zones
say "vm.watermark_scale_factor is $factor now: MIN $(in_mib "$min"), LOW $(in_mib "$low"), HIGH $(in_mib "$high")"
if [ "$low" -le "$threshold" ]; then
    die "LOW ($(in_mib "$low")) is still not above the eviction threshold ($(in_mib "$threshold")): pods are evicted before memory is swapped"
fi
if [ "$wanted" -gt "$factor" ] && [ "$low" -lt "$target" ]; then
    warn "a factor of $wanted is wanted, but the kernel takes $LARGEST_FACTOR at most: LOW stays $(((target - low) / MIB)) MiB short"
fi
