#!/bin/sh
# Tests the shutdown inhibitor on a made-up logind and container runtime (folder bin), under dash and bash.
#
# Usage: run.sh [--case SHELL CASE]. JOBS is the number of cases that run at the same time. Cases wait for what they expect
# instead of sleeping, and all upper bounds leave seconds to a busy machine. The last line is "N passed, N failed".
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
script=${SCRIPT:-$here/../../../../../assets/active/scripts/vm-drain-shutdown-inhibitor.sh}

cases="
no_vms one_vm two_hundred_vms
a_vm_that_does_not_stop a_vm_that_hangs many_vms_that_hang a_vm_without_acpi a_vm_that_starts_late
listing_pods_hangs listing_containers_hangs exec_hangs listing_hangs_at_first listing_fails_at_first
garbage_from_pods garbage_from_ps garbage_from_exec garbage_at_first
cancelled_during_the_drain cancelled_after_the_drain cancelled_without_a_signal
stopped_when_idle restarted_during_the_drain killed_during_the_drain drain_process_killed started_during_a_shutdown
two_signals signal_without_a_shutdown shutdown_without_a_signal shutdown_while_the_lock_is_taken
shutdown_while_the_lock_is_taken_late
monitor_dies monitor_is_away_during_a_shutdown logind_hangs_at_first garbage_from_logind
lock_is_lost delay_is_short delay_is_unlimited daemon_is_stuck
"

# --- a case ----------------------------------------------------------------------------------------------------------------

fault() { echo "$*" >>"$T/faults"; }

# eventually WHAT COMMAND...: waits until the command succeeds, up to a minute.
eventually() {
    what=$1
    shift
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 240 ]; then
            fault "did not happen: $what"
            return 1
        fi
        sleep 0.25
    done
}

clock() {
    read -r uptime _ </proc/uptime
    now=$((${uptime%.*} * 100 + 1${uptime#*.} - 100))
}

held() { ! flock -n -x "$FAKE/lock" true; }
released() { ! held; }
# The daemon knows that it holds the lock.
locked() { held && [ "$(grep -c 'took the shutdown lock' "$T/log")" -ge "${1:-1}" ]; }
logged() { grep -q -e "$1" "$T/log"; }
logged_times() { [ "$(grep -c -e "$1" "$T/log")" -ge "$2" ]; }
connected() { ls "$FAKE"/monitors/* >/dev/null 2>&1; }

processes() { grep -lazx "TEST_ID=$T" /proc/[0-9]*/environ 2>/dev/null | sed 's,/proc/,,; s,/.*,,'; }
none_left() { [ -z "$(processes)" ]; }
kill_all() {
    while ! none_left; do
        # shellcheck disable=SC2046
        kill -s KILL $(processes) 2>/dev/null
    done
    rm -f "$FAKE"/monitors/*
    wait "$daemon" 2>/dev/null
}
# process_of WORD...: the process of a role.
process_of() {
    for pid in $(processes); do
        case "$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline")" in
            "$shell $script $1 "*) echo "$pid" ;;
        esac
    done
}

no_drain() { [ -z "$(process_of drain)$(process_of rounds)$(process_of visit)$(process_of guard)" ]; }

start() {
    env TEST_ID="$T" FAKE="$FAKE" PATH="$here/bin:$PATH" RUN="$T/run" SH="$shell" DRAIN_LIMIT="${DRAIN_LIMIT:-4}" \
        CALL_LIMIT="${CALL_LIMIT:-20}" POLL=0.2 TICK="${TICK:-300}" RETRY=0.3 setsid "$shell" "$script" >>"$T/log" 2>&1 &
    daemon=$!
}

ready() {
    start
    eventually "the lock is taken" locked
    eventually "the bus is followed" connected
}

stop() {
    kill -s TERM "$daemon" 2>/dev/null
    eventually "the daemon ends" gone "$daemon"
    wait "$daemon" 2>/dev/null
    # The processes were killed before; the kernel may still be busy with them.
    eventually "no process is left" none_left
    released || fault "the lock is held after the end"
}
gone() { [ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }

# vms FIRST LAST
vms() {
    for number in $(seq "$1" "$2"); do
        vm=$(vm "$number")
        mkdir -p "$vm"
        echo "ns_vm-$number" >"$vm/name"
        [ $((number % 2)) -eq 0 ] || : >"$vm/ends"
        : >"$vm/on"
    done
}
vm() { printf '%s/vms/a%063x' "$FAKE" "$1"; }

# set_preparing VALUE: as logind does, in one step with respect to granting locks.
set_preparing() {
    # shellcheck disable=SC2016
    flock "$FAKE/gate" sh -c 'echo "$1" >"$2.new" && mv "$2.new" "$2"' - "$1" "$FAKE/preparing"
}
signal() {
    for pipe in "$FAKE"/monitors/*; do
        [ ! -p "$pipe" ] || printf '{"type":"signal","member":"PrepareForShutdown","payload":{"type":"b","data":[%s]}}\n' "$1" 1<>"$pipe"
    done
}
shutdown() {
    set_preparing true
    clock
    begun=$now
    signal true
}
cancel() {
    set_preparing false
    signal false
}

# Expects the release of the lock before logind's delay is over.
released_in_time() {
    eventually "the lock is released" released
    clock
    took=$((now - begun))
    [ "$took" -lt $(($(cat "$FAKE/delay") * 100)) ] || fault "the lock was released after $took hundredths of a second"
}
# Expects that the daemon waited for the whole time.
used_its_time() { [ "$took" -ge $((${DRAIN_LIMIT:-4} * 100 - 100)) ] || fault "the lock was released too soon: $took"; }

# requests NUMBER COUNT
requests() {
    count=0
    [ ! -e "$(vm "$1")/requests" ] || count=$(wc -l <"$(vm "$1")/requests")
    [ "$count" -eq "$2" ] || fault "virtual machine $1 got $count requests, expected $2"
}
asked() { [ -s "$(vm "$1")/requests" ]; }
each() {
    for number in $(seq "$1" "$2"); do requests "$number" "$3"; done
}

# --- cases: how many -------------------------------------------------------------------------------------------------------

no_vms() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    ready
    shutdown
    eventually "end" logged "all virtual machines are off"
    released_in_time
}

one_vm() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 1
    ready
    shutdown
    eventually "end" logged "all virtual machines are off"
    released_in_time
    requests 1 1
    grep -qx acpi "$(vm 1)/requests" || fault "not asked by ACPI"
}

two_hundred_vms() {
    DRAIN_LIMIT=250
    echo 300 >"$FAKE/delay"
    vms 1 200
    : >"$FAKE/count"
    ready
    shutdown
    for _ in 1 2 3; do eventually "end" logged "all virtual machines are off" && break; done
    released_in_time
    each 1 200 1
    most=$(sort -n "$FAKE/count" | tail -n 1)
    [ "$most" -le 32 ] || fault "$most calls at the same time"
    [ "$most" -gt 1 ] || fault "only one call at a time"
}

# --- cases: virtual machines that do not behave ------------------------------------------------------------------------------

a_vm_that_does_not_stop() {
    DRAIN_LIMIT=15
    echo 60 >"$FAKE/delay"
    vms 1 5
    : >"$(vm 3)/stubborn"
    ready
    shutdown
    released_in_time
    used_its_time
    each 1 5 1
    eventually "report" logged "not known to be off: ns_vm-3\$"
}

a_vm_that_hangs() {
    DRAIN_LIMIT=20
    echo 90 >"$FAKE/delay"
    CALL_LIMIT=5
    vms 1 20
    : >"$(vm 1)/hang"
    ready
    shutdown
    released_in_time
    used_its_time
    each 2 20 1
    requests 1 0
}

many_vms_that_hang() {
    DRAIN_LIMIT=40
    echo 120 >"$FAKE/delay"
    CALL_LIMIT=6
    vms 1 50
    for number in $(seq 1 40); do : >"$(vm "$number")/hang"; done
    ready
    shutdown
    released_in_time
    each 41 50 1
    each 1 40 0
}

a_vm_without_acpi() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 2
    : >"$(vm 1)/no-acpi"
    ready
    shutdown
    eventually "end" logged "all virtual machines are off"
    released_in_time
    each 1 2 1
    grep -qx default "$(vm 1)/requests" || fault "libvirt was not left to choose"
}

a_vm_that_starts_late() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 1
    : >"$(vm 1)/stubborn"
    ready
    shutdown
    eventually "request" asked 1
    vms 2 2
    eventually "request to the late one" asked 2
    rm "$(vm 1)/stubborn"
    released_in_time
    each 1 2 1
}

# --- cases: a runtime that does not behave -----------------------------------------------------------------------------------

runtime_never_works() {
    CALL_LIMIT=1
    vms 1 3
    : >"$FAKE/$1"
    ready
    shutdown
    released_in_time
    used_its_time
    each 1 3 0
}
listing_pods_hangs() { runtime_never_works hang-pods; }
listing_containers_hangs() { runtime_never_works hang-ps; }
exec_hangs() { runtime_never_works hang-exec; }
garbage_from_pods() { runtime_never_works garbage-pods; }
garbage_from_ps() { runtime_never_works garbage-ps; }
garbage_from_exec() { runtime_never_works garbage-exec; }

runtime_recovers() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    # Long enough for a call that does work, on a busy machine.
    CALL_LIMIT=5
    vms 1 3
    : >"$FAKE/$1"
    ready
    shutdown
    eventually "a report" logged "could not list the pods"
    rm "$FAKE/$1"
    eventually "end" logged "all virtual machines are off"
    released_in_time
    each 1 3 1
}
listing_hangs_at_first() { runtime_recovers hang-pods; }
listing_fails_at_first() { runtime_recovers fail-pods; }
garbage_at_first() { runtime_recovers garbage-pods; }

# --- cases: cancelled ----------------------------------------------------------------------------------------------------------

cancelled_during_the_drain() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 2
    : >"$(vm 1)/stubborn"
    ready
    shutdown
    eventually "request" logged "asked ns_vm-1"
    held || fault "the lock was released too soon"
    cancel
    eventually "report" logged "the shutdown was cancelled"
    locked || fault "the lock is not held after a cancelled shutdown"
    eventually "the drain ends" no_drain
    # The next shutdown is a new one.
    rm -f "$(vm 1)/stubborn"
    rm -f "$(vm 1)/on"
    vms 3 3
    shutdown
    eventually "end" logged "all virtual machines are off"
    released_in_time
    each 1 3 1
}

cancelled_after_the_drain() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 1
    ready
    shutdown
    eventually "end" logged "released the shutdown lock"
    released_in_time
    cancel
    eventually "the lock is taken again" locked 2
    vms 2 2
    shutdown
    eventually "end" logged_times "released the shutdown lock" 2
    released_in_time
    each 1 2 1
}

cancelled_without_a_signal() {
    DRAIN_LIMIT=60
    TICK=0.5
    echo 100 >"$FAKE/delay"
    vms 1 1
    ready
    shutdown
    eventually "end" logged "released the shutdown lock"
    released_in_time
    set_preparing false
    eventually "the lock is taken again" locked 2
    requests 1 1
}

# --- cases: the daemon ends or starts ---------------------------------------------------------------------------------------

stopped_when_idle() {
    vms 1 1
    ready
    kill -s TERM "$daemon"
    eventually "the daemon ends" gone "$daemon"
    requests 1 0
}

restarted_during_the_drain() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 2
    : >"$(vm 2)/stubborn"
    ready
    shutdown
    eventually "request" logged "asked ns_vm-2"
    kill -s TERM "$daemon"
    sleep 0.5
    held || fault "the lock was released although a virtual machine runs"
    rm "$(vm 2)/stubborn"
    released_in_time
    eventually "the daemon ends" gone "$daemon"
    wait "$daemon"
    eventually "no process is left" none_left
    rm -f "$FAKE"/monitors/*
    start
    eventually "nothing is left to do" logged "were dealt with already"
    each 1 2 1
}

killed_during_the_drain() {
    DRAIN_LIMIT=60
    CALL_LIMIT=10
    echo 100 >"$FAKE/delay"
    vms 1 3
    : >"$(vm 1)/stubborn"
    : >"$(vm 2)/hang"
    ready
    shutdown
    eventually "request" logged "asked ns_vm-1"
    eventually "request" logged "asked ns_vm-3"
    # As systemd does with the whole control group.
    kill_all
    released || fault "the lock is held by nobody"
    rm -f "$(vm 1)/stubborn" "$(vm 2)/hang"
    start
    eventually "it goes on" logged "continuing what was begun"
    eventually "end" logged "all virtual machines are off"
    each 1 3 1
    # Afterwards it can still take part in a cancelled shutdown.
    eventually "the bus is followed" connected
    cancel
    eventually "the lock is taken again" locked 2
}

drain_process_killed() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 2
    : >"$(vm 1)/stubborn"
    ready
    shutdown
    eventually "request" logged "asked ns_vm-1"
    eventually "request" logged "asked ns_vm-2"
    # shellcheck disable=SC2046
    kill -s KILL $(process_of rounds)
    eventually "report" logged "ended unexpectedly"
    held || fault "the lock was released too soon"
    rm "$(vm 1)/stubborn"
    eventually "end" logged "all virtual machines are off"
    released_in_time
    each 1 2 1
}

started_during_a_shutdown() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 2
    set_preparing true
    start
    eventually "end" logged "all virtual machines are off"
    logged "the shutdown lock is not held" || fault "no warning about the lock"
    each 1 2 1
}

# --- cases: signals ------------------------------------------------------------------------------------------------------------

two_signals() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 2
    : >"$(vm 1)/stubborn"
    ready
    shutdown
    signal true
    eventually "request" logged "asked ns_vm-1"
    signal true
    rm "$(vm 1)/stubborn"
    eventually "end" logged "released the shutdown lock"
    released_in_time
    signal true
    eventually "the bus is followed" connected
    each 1 2 1
    ! logged_times "the host shuts down" 2 || fault "more than one drain"
}

signal_without_a_shutdown() {
    vms 1 1
    ready
    signal true
    signal true
    # The answer to a later event shows that the earlier ones were dealt with.
    cancel
    sleep 2
    requests 1 0
    locked || fault "the lock was released"
}

shutdown_without_a_signal() {
    DRAIN_LIMIT=60
    TICK=0.5
    echo 100 >"$FAKE/delay"
    vms 1 1
    ready
    set_preparing true
    clock
    begun=$now
    released_in_time
    requests 1 1
}

shutdown_while_the_lock_is_taken() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 1
    : >"$FAKE/shutdown-when-locked"
    start
    eventually "end" logged "all virtual machines are off"
    eventually "release" released
    requests 1 1
}

# Only the check after taking the lock can notice this one: the two checks of the start are over.
shutdown_while_the_lock_is_taken_late() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 1
    : >"$FAKE/shutdown-when-locked"
    : >"$FAKE/late-lock"
    start
    eventually "the checks of the start are over" checks_are_over 2
    rm "$FAKE/late-lock"
    eventually "end" logged "all virtual machines are off"
    eventually "release" released
    requests 1 1
}
checks_are_over() { [ -e "$FAKE/checks" ] && [ "$(wc -l <"$FAKE/checks")" -ge "$1" ] && [ -z "$(process_of check)" ]; }

monitor_dies() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 1
    ready
    for pipe in "$FAKE"/monitors/*; do
        rm "$pipe"
        kill -s KILL "${pipe##*/}"
    done
    eventually "report" logged "the connection to the system bus ended"
    eventually "the bus is followed again" connected
    shutdown
    eventually "end" logged "all virtual machines are off"
    released_in_time
    requests 1 1
}

monitor_is_away_during_a_shutdown() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 1
    ready
    : >"$FAKE/no-monitor"
    for pipe in "$FAKE"/monitors/*; do
        rm "$pipe"
        kill -s KILL "${pipe##*/}"
    done
    eventually "report" logged_times "the connection to the system bus ended" 2
    shutdown
    rm "$FAKE/no-monitor"
    eventually "end" logged "all virtual machines are off"
    released_in_time
    requests 1 1
}

logind_hangs_at_first() {
    DRAIN_LIMIT=60
    TICK=1
    echo 100 >"$FAKE/delay"
    vms 1 1
    ready
    : >"$FAKE/hang-logind"
    shutdown
    eventually "report" logged "logind does not say"
    rm "$FAKE/hang-logind"
    eventually "end" logged "all virtual machines are off"
    released_in_time
    requests 1 1
}

garbage_from_logind() {
    TICK=1
    vms 1 1
    : >"$FAKE/garbage-logind"
    ready
    signal true
    eventually "report" logged "logind does not say"
    requests 1 0
    locked || fault "the lock was released"
}

# --- cases: the lock -----------------------------------------------------------------------------------------------------------

lock_is_lost() {
    DRAIN_LIMIT=60
    echo 100 >"$FAKE/delay"
    vms 1 1
    ready
    kill -s KILL "$(cat "$FAKE/holder")"
    eventually "the lock is taken again" locked 2
    shutdown
    eventually "end" logged "all virtual machines are off"
    released_in_time
    requests 1 1
}

delay_is_short() {
    DRAIN_LIMIT=120
    echo 60 >"$FAKE/delay"
    vms 1 1
    : >"$(vm 1)/stubborn"
    ready
    shutdown
    released_in_time
    requests 1 1
    logged "virtual machines get 40 seconds" || fault "no warning about the delay"
}

delay_is_unlimited() {
    DRAIN_LIMIT=10
    echo 18446744073709 >"$FAKE/delay"
    vms 1 1
    : >"$(vm 1)/stubborn"
    ready
    shutdown
    eventually "the lock is released" released
    requests 1 1
    ! logged "virtual machines get" || fault "the delay was misunderstood"
}

daemon_is_stuck() {
    DRAIN_LIMIT=10
    echo 45 >"$FAKE/delay"
    vms 1 1
    : >"$(vm 1)/stubborn"
    ready
    shutdown
    eventually "request" asked 1
    kill -s STOP "$daemon"
    released_in_time
    kill -s CONT "$daemon"
    requests 1 1
}

# --- running -------------------------------------------------------------------------------------------------------------------

if [ "${1:-}" = --case ]; then
    shell=$2
    T=$WORK/$shell.$3
    FAKE=$T/fake
    mkdir -p "$FAKE/monitors" "$FAKE/vms" "$FAKE/calls"
    : >"$T/faults"
    : >"$T/log"
    : >"$FAKE/lock"
    : >"$FAKE/gate"
    echo false >"$FAKE/preparing"
    echo 30 >"$FAKE/delay"
    # Text, identifiers that are too short, names that are no domain names, bytes that are no text.
    # shellcheck disable=SC2016
    printf 'FATA[0000] garbage\nabc123\n\377\000\001 $(reboot) ; true\n' >"$FAKE/garbage"
    daemon=
    "$3"
    [ -z "$daemon" ] || stop
    kill_all
    if [ -s "$T/faults" ]; then
        {
            echo "FAILED  $shell: $3"
            sed 's/^/        /' "$T/faults"
            sed 's/^/        | /' "$T/log"
        } >"$T/report"
        cat "$T/report"
    else
        : >"$T/passed"
    fi
    exit 0
fi

WORK=$(mktemp -d)
export WORK
trap 'rm -rf "$WORK"' EXIT
for shell in dash bash; do
    for case in $cases; do echo "$shell $case"; done
done | xargs -L 1 -P "${JOBS:-12}" sh "$here/run.sh" --case
total=0
passed=0
for folder in "$WORK"/*/; do
    total=$((total + 1))
    [ ! -e "$folder/passed" ] || passed=$((passed + 1))
done
expected=0
for _ in $cases $cases; do expected=$((expected + 1)); done
[ "$total" -eq "$expected" ] || echo "only $total of $expected cases were run"
echo "$passed passed, $((expected - passed)) failed"
[ "$passed" -eq "$expected" ]
