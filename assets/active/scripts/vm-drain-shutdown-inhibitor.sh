#!/bin/sh
# Shuts virtual machines down gracefully when the host shuts down.
#
# The daemon holds a logind delay lock for shutdown. When logind prepares one, it asks every virtual machine on the host to
# shut down (ACPI power button), waits until all are off or the time is over, and releases the lock. If the shutdown is
# cancelled, it takes the lock again.
#
# The daemon itself only reads events from a pipe and never waits for anything else, so nothing that hangs can keep it from
# releasing the lock. Everything that may block runs as a process of its own, in a process group of its own, and reports to
# the pipe. These processes are this script again, called with the name of a role as first argument:
#   monitor   follows the signals of logind; a signal only causes a check
#   ticker    causes a check from time to time, in case a signal was missed
#   check     asks logind whether it prepares a shutdown: only this answer starts or cancels a drain
#   lock      runs systemd-inhibit, which holds the lock as long as its child, the role hold, lives
#   drain     runs the role rounds and reports how it ended
#   rounds    lists the pods and visits each of them, again and again; the role visit deals with one pod
#   guard     reports that the time is over, and ends the holder of the lock if that does not help
#
# State is kept below RUN, so that a daemon that is started in the middle of a shutdown goes on where the last one ended.
#
# Variables, in seconds unless said otherwise: RUN (folder for state), DRAIN_LIMIT (the longest drain), CALL_LIMIT (the
# longest call of crictl), POLL (pause between rounds), TICK (pause between checks), RETRY (pause before the lock is tried
# again), PARALLEL (number of pods visited at the same time), SH (the shell for the roles).
set -u
export LC_ALL=C

RUN=${RUN:-/run/vm-drain-shutdown-inhibitor}
DRAIN_LIMIT=${DRAIN_LIMIT:-120}
CALL_LIMIT=${CALL_LIMIT:-10}
POLL=${POLL:-2}
TICK=${TICK:-10}
RETRY=${RETRY:-5}
PARALLEL=${PARALLEL:-32}
SH=${SH:-/bin/sh}
SELF=$0
export RUN DRAIN_LIMIT CALL_LIMIT POLL TICK RETRY PARALLEL SH

# What the drop-in for logind asks for; used until logind has said what is in effect.
CONFIGURED_DELAY=150
EVENTS=$RUN/events
PODS=$RUN/pods
BUS_NAME=org.freedesktop.login1
BUS_PATH=/org/freedesktop/login1
BUS_INTERFACE=org.freedesktop.login1.Manager

say() { printf 'vm-drain-shutdown-inhibitor: %s\n' "$*"; }
warn() { printf 'vm-drain-shutdown-inhibitor: warning: %s\n' "$*" >&2; }

# Sets now: hundredths of a second since boot. Unlike the date, this never jumps.
clock() {
    read -r uptime _ </proc/uptime
    now=$((${uptime%.*} * 100 + 1${uptime#*.} - 100))
}

# Prints the first line of a file, or nothing.
first_line() {
    line=
    [ ! -s "$1" ] || read -r line <"$1"
    printf '%.200s' "$line"
}

# put TEXT FILE: writes a file in one step, since a process may be killed at any time.
put() {
    [ "$(first_line "$2")" != "$1" ] || return 0
    echo "$1" >"$2.new"
    mv -f "$2.new" "$2"
}

is_number() {
    case $1 in
        '' | *[!0-9]*) return 1 ;;
    esac
}

# --- roles -----------------------------------------------------------------------------------------------------------------

# File descriptor 3 is the event pipe. busctl reports on its standard error when it is connected.
monitor() {
    pause=1
    while :; do
        clock
        started=$now
        SYSTEMD_LOG_TARGET=console SYSTEMD_LOG_LEVEL=info busctl monitor --json=short \
            --match="type='signal',path='$BUS_PATH',interface='$BUS_INTERFACE',member='PrepareForShutdown'" >&3 2>&3
        clock
        [ $((now - started)) -lt 6000 ] || pause=1
        echo "monitor-ended $pause" >&3
        sleep "$pause"
        pause=$((pause * 2))
        [ "$pause" -le 30 ] || pause=30
    done
}

ticker() {
    while sleep "$TICK"; do
        echo tick >&3
    done
}

# check ID
check() {
    for _ in 1 2 3; do
        # The answer is "b true" and "t 150000000".
        # shellcheck disable=SC2046
        set -- "$1" $(timeout --foreground -k 1 3 busctl get-property "$BUS_NAME" "$BUS_PATH" "$BUS_INTERFACE" \
            PreparingForShutdown InhibitDelayMaxUSec 2>/dev/null | tr -cd 'a-z0-9 \n')
        if [ $# -eq 5 ] && [ "$2" = b ] && [ "$4" = t ] && is_number "$5"; then
            case $3 in
                true | false)
                    echo "preparing $1 $3 $5" >&3
                    return
                    ;;
            esac
        fi
        sleep 1
    done
    echo "preparing $1 unknown 0" >&3
}

# lock ID
lock() {
    systemd-inhibit --what=shutdown --mode=delay --who="vm-drain-shutdown-inhibitor" \
        --why="Virtual machines are shut down before the host" "$SH" "$SELF" hold "$1" </dev/null
    sleep "$RETRY"
    echo "unlocked $1" >&3
}

# hold ID: systemd-inhibit closes all file descriptors, so the pipe is opened by its name.
hold() {
    echo "locked $1" >"$EVENTS"
    exec sleep 2147483647
}

# guard GENERATION SECONDS MORE_SECONDS GROUP_OF_LOCK
guard() {
    sleep "$2"
    echo "deadline $1" >&3
    sleep "$3"
    warn "the lock was not released in time; ending its holder"
    [ "$4" -eq 0 ] || kill -s KILL -- "-$4"
}

# drain GENERATION DEADLINE
drain() {
    "$SH" "$SELF" rounds "$2"
    status=$?
    # An unexpected end leads to another start: not too soon.
    [ "$status" -eq 0 ] || [ "$status" -eq 3 ] || sleep 1
    echo "drained $1 $status" >&3
}

# call DEADLINE OUTPUT_FILE ARGUMENT...: runs crictl. Ends with 124 when the time limit was reached. Output goes to a file,
# since a pipe would have to be waited for if something kept it open.
call() {
    clock
    limit=$((($1 - now + 99) / 100))
    [ "$limit" -gt 0 ] || return 124
    [ "$limit" -le "$CALL_LIMIT" ] || limit=$CALL_LIMIT
    call_output=$2
    shift 2
    if [ "$1" = exec ]; then
        shift
        # The runtime gets the limit too: else a command that hangs would stay behind in the container.
        set -- exec --sync --timeout "$limit" "$@"
    fi
    timeout --foreground -k 1 "$limit" crictl --timeout "${limit}s" "$@" </dev/null >"$call_output" 2>"$call_output.error"
    call_status=$?
    [ "$call_status" -ne 137 ] || call_status=124
    return "$call_status"
}

# only_lines PATTERN FILE: true when every line that is not blank matches the pattern from end to end.
only_lines() { ! grep -aEvq "^($1)?[[:blank:]]*\$" "$2"; }

# rounds DEADLINE: ends with 0 when no virtual machine runs any more, with 3 when the time is over.
rounds() {
    mkdir -p "$PODS"
    list=$RUN/list
    while :; do
        complete=yes
        call "$1" "$list" pods --quiet --state ready --label kubevirt.io=virt-launcher || complete=no
        if [ "$complete" = no ]; then
            warn "could not list the pods: $(first_line "$list.error")"
        elif ! only_lines '[0-9a-f]{64}' "$list"; then
            warn "could not list the pods: the container runtime answered with something else than pod identifiers"
            complete=no
        fi
        # Without a complete list, pods that are known from an earlier one are visited, too.
        {
            grep -aEx '[0-9a-f]{64}' "$list"
            [ "$complete" = yes ] || cat "$RUN/known"
        } | sort -u >"$RUN/next"
        mv -f "$RUN/next" "$RUN/known"

        # Pods whose last call reached its time limit come last: they may occupy all places for a while.
        : >"$RUN/quick"
        : >"$RUN/slow"
        while read -r pod; do
            rm -f "$PODS/$pod/result"
            if [ -e "$PODS/$pod/slow" ]; then echo "$pod" >>"$RUN/slow"; else echo "$pod" >>"$RUN/quick"; fi
        done <"$RUN/known"
        cat "$RUN/quick" "$RUN/slow" | xargs -r -n 1 -P "$PARALLEL" "$SH" "$SELF" visit "$1"

        left=0
        while read -r pod; do
            [ "$(first_line "$PODS/$pod/result")" = off ] || left=$((left + 1))
        done <"$RUN/known"
        if [ "$complete" = yes ] && [ "$left" -eq 0 ]; then
            return 0
        fi
        clock
        [ "$now" -lt "$1" ] || return 3
        sleep "$POLL"
    done
}

# visit DEADLINE POD: finds out whether a virtual machine runs in the pod, and asks it to shut down if it was not asked yet.
# Writes the result: off, running or unknown. A paused machine counts as off, since it cannot react.
visit() {
    pod=$PODS/$2
    mkdir -p "$pod"
    result=unknown
    if inspect "$1" "$2"; then
        rm -f "$pod/slow"
    elif [ "$?" -eq 124 ]; then
        : >"$pod/slow"
    fi
    put "$result" "$pod/result"
    # xargs would stop at some exit codes.
    exit 0
}

is_off() {
    result=off
    [ ! -e "$pod/domain" ] || [ -e "$pod/off" ] || say "$(first_line "$pod/domain") is off"
    : >"$pod/off"
}

# inspect DEADLINE POD
inspect() {
    container=$(first_line "$pod/container")
    if [ -z "$container" ]; then
        call "$1" "$pod/output" ps --quiet --state running --name '^compute$' --pod "$2" || return
        only_lines '[0-9a-f]{64}' "$pod/output" || return 1
        container=$(grep -aEx -m 1 '[0-9a-f]{64}' "$pod/output")
        if [ -z "$container" ]; then
            is_off
            return 0
        fi
        put "$container" "$pod/container"
    fi

    call "$1" "$pod/output" exec "$container" virsh list --name --state-running || {
        code=$?
        # The container may have ended: the next visit looks for it again.
        rm -f "$pod/container"
        return "$code"
    }
    # A domain is named NAMESPACE_NAME.
    only_lines '[a-z0-9][a-z0-9.-]*_[a-z0-9.-]+' "$pod/output" || return 1
    domain=$(grep -aEo -m 1 '^[a-z0-9][a-z0-9.-]*_[a-z0-9.-]+' "$pod/output")
    if [ -z "$domain" ]; then
        is_off
        return 0
    fi
    result=running
    rm -f "$pod/off"
    put "$domain" "$pod/domain"
    [ ! -e "$pod/asked" ] || return 0

    # libvirt by itself would try the guest agent first, which takes a minute to fail in guests without one. Where the ACPI
    # way is refused, libvirt may choose.
    if [ -e "$pod/refused" ]; then
        call "$1" "$pod/output" exec "$container" virsh shutdown "$domain"
    else
        call "$1" "$pod/output" exec "$container" virsh shutdown --mode acpi "$domain"
    fi
    code=$?
    case $code in
        0)
            : >"$pod/asked"
            say "asked $domain to shut down"
            ;;
        124) warn "$domain: the request to shut down did not return in time; trying again" ;;
        *)
            warn "$domain: the request to shut down failed, trying again: $(first_line "$pod/output.error")"
            : >"$pod/refused"
            ;;
    esac
    return "$code"
}

# --- the daemon ------------------------------------------------------------------------------------------------------------

# spawn ROLE ARGUMENT...: starts a role in a process group of its own and sets spawned.
spawn() {
    setsid "$SH" "$SELF" "$@" &
    spawned=$!
}

# end PID: ends a role and everything it started. The process may not have a group of its own yet, or get it just now.
end() {
    [ -n "$1" ] || return 0
    kill -s KILL -- "-$1" 2>/dev/null
    kill -s KILL "$1" 2>/dev/null
    kill -s KILL -- "-$1" 2>/dev/null
    wait "$1" 2>/dev/null
}

take_lock() {
    lock_id=$((lock_id + 1))
    spawn lock "$lock_id"
    lock_pid=$spawned
}

release_lock() {
    end "$lock_pid"
    lock_pid=
    locked=no
}

# One check at a time. A request during a check leads to another one, since the running one may have asked too early. A check
# takes 15 seconds at most; one that has not reported after 30 was killed.
request_check() {
    clock
    if [ -n "$check_pid" ]; then
        if [ $((now - check_started)) -lt 3000 ]; then
            check_again=yes
            return
        fi
        end "$check_pid"
    fi
    check_started=$now
    check_again=no
    check_generation=$generation
    check_id=$((check_id + 1))
    spawn check "$check_id"
    check_pid=$spawned
}

forget_shutdown() {
    rm -rf "$RUN/begun" "$RUN/done" "$PODS"
    : >"$RUN/known"
}

# Sets limit, the seconds for the drain, and extra, those after which the guard ends the holder of the lock. Both together
# are below the delay that logind allows, which may be another than ours: the kubelet also sets it.
compute_limits() {
    limit=$((delay - 20))
    [ "$limit" -ge $((delay * 2 / 3)) ] || limit=$((delay * 2 / 3))
    if [ "$limit" -lt "$DRAIN_LIMIT" ]; then
        warn "logind delays a shutdown for only $delay seconds; virtual machines get $limit seconds instead of $DRAIN_LIMIT"
    else
        limit=$DRAIN_LIMIT
    fi
    extra=$(((delay - limit) / 2))
    [ "$extra" -le 10 ] || extra=10
}

begin_drain() {
    state=draining
    generation=$((generation + 1))
    restarts=0
    clock
    begun=$(first_line "$RUN/begun")
    if is_number "$begun" && [ "$begun" -le "$now" ] && [ $((now - begun)) -lt $((delay * 100)) ]; then
        if [ -e "$RUN/done" ]; then
            say "the host shuts down, and virtual machines were dealt with already"
            finish_drain
            return
        fi
        say "the host shuts down; continuing what was begun $(((now - begun) / 100)) seconds ago"
    else
        forget_shutdown
        # logind counts from its signal. On a busy host, the check may have taken seconds.
        begun=$now
        if [ -n "$signalled" ] && [ $((now - signalled)) -lt $((delay * 100)) ]; then
            begun=$signalled
        fi
        put "$begun" "$RUN/begun"
        say "the host shuts down; asking virtual machines to shut down"
    fi
    [ "$locked" = yes ] || warn "the shutdown lock is not held; the host may go down before virtual machines are off"
    compute_limits
    deadline=$((begun + limit * 100))
    remaining=$(((deadline - now) / 100))
    if [ "$remaining" -le 0 ]; then
        finish_drain
        return
    fi
    spawn guard "$generation" "$remaining" "$extra" "${lock_pid:-0}"
    guard_pid=$spawned
    start_rounds
}

start_rounds() {
    spawn drain "$generation" "$deadline"
    drain_pid=$spawned
}

stop_drain() {
    end "$drain_pid"
    end "$guard_pid"
    drain_pid=
    guard_pid=
}

finish_drain() {
    # The lock goes first: nothing may delay it.
    release_lock
    stop_drain
    : >"$RUN/done"
    state=drained
    say "released the shutdown lock"
    request_check
}

# rounds_ended STATUS
rounds_ended() {
    end "$drain_pid"
    drain_pid=
    clock
    case $1 in
        0)
            say "all virtual machines are off after $(((now - begun) / 100)) seconds"
            finish_drain
            ;;
        3) time_is_over ;;
        *)
            restarts=$((restarts + 1))
            if [ "$restarts" -le 5 ] && [ "$now" -lt "$deadline" ]; then
                warn "the drain ended unexpectedly with status $1; starting it again"
                start_rounds
            else
                warn "the drain ended unexpectedly with status $1; giving up"
                finish_drain
            fi
            ;;
    esac
}

time_is_over() {
    finish_drain
    names=
    while read -r pod; do
        [ ! -e "$PODS/$pod/off" ] || continue
        name=$(first_line "$PODS/$pod/domain")
        names="$names ${name:-pod $pod}"
    done <"$RUN/known"
    warn "the time for the drain is over; not known to be off:${names:- (the pods could not be listed)}"
}

cancel_drain() {
    stop_drain
    forget_shutdown
    state=idle
    signalled=
    generation=$((generation + 1))
    say "the shutdown was cancelled; virtual machines that were asked already go down all the same"
    [ -n "$lock_pid" ] || take_lock
}

# preparing ID ANSWER DELAY: what a check found out.
preparing() {
    [ "$1" = "$check_id" ] && [ -n "$check_pid" ] || return 0
    wait "$check_pid"
    check_pid=
    if [ "$check_generation" -ne "$generation" ]; then
        # It may have asked before the state changed.
        request_check
        return
    fi
    case ${#3}.$2 in
        *.unknown) ;;
        # Too long for the shell's arithmetic: no limit is set.
        1[6-9].* | [2-9]?.*) delay=86400 ;;
        *) delay=$(($3 / 1000000)) ;;
    esac
    case $2.$state in
        true.idle) begin_drain ;;
        false.idle)
            [ "$check_again" = yes ] || signalled=
            [ ! -e "$RUN/begun" ] || forget_shutdown
            ;;
        false.*) cancel_drain ;;
        unknown.*) warn "logind does not say whether it prepares a shutdown" ;;
    esac
    [ "$check_again" = no ] || request_check
}

handle() {
    case $1 in
        tick | Monitoring) request_check ;;
        '{'*)
            clock
            signalled=${signalled:-$now}
            request_check
            ;;
        monitor-ended) warn "the connection to the system bus ended; trying again in $2 seconds" ;;
        preparing) preparing "$2" "$3" "$4" ;;
        locked)
            [ "$2" = "$lock_id" ] || return 0
            locked=yes
            say "took the shutdown lock"
            # A shutdown that began before has sent its signal before.
            request_check
            ;;
        unlocked)
            [ "$2" = "$lock_id" ] && [ -n "$lock_pid" ] || return 0
            warn "the shutdown lock could not be taken, or was lost"
            release_lock
            [ "$state" != idle ] || take_lock
            ;;
        drained)
            [ "$state" = draining ] && [ "$2" = "$generation" ] || return 0
            rounds_ended "$3"
            ;;
        deadline)
            [ "$state" = draining ] && [ "$2" = "$generation" ] || return 0
            time_is_over
            ;;
        stop | Connection | '') ;;
        *) warn "from the system bus: $*" ;;
    esac
}

serve() {
    mkdir -p "$RUN"
    chmod 0700 "$RUN"
    rm -f "$EVENTS"
    mkfifo -m 0600 "$EVENTS" || exit 1
    # Opened for both directions, so that it never ends.
    exec 3<>"$EVENTS"

    state=idle
    signalled=
    generation=1
    delay=$CONFIGURED_DELAY
    stopping=no
    locked=no
    lock_id=0
    lock_pid=
    check_pid=
    check_id=0
    check_again=no
    drain_pid=
    guard_pid=
    # Stopping waits for a drain, which always ends in time.
    trap 'stopping=yes; echo stop >&3' TERM INT

    spawn monitor
    monitor_pid=$spawned
    spawn ticker
    ticker_pid=$spawned
    take_lock
    request_check

    while [ "$stopping" = no ] || [ "$state" = draining ]; do
        if read -r event first second third <&3; then
            handle "$event" "$first" "$second" "$third"
        elif [ "$stopping" = no ]; then
            sleep 1
        fi
    done
    release_lock
    end "$check_pid"
    end "$ticker_pid"
    end "$monitor_pid"
    rm -f "$EVENTS"
    say "stopped"
}

case ${1:-serve} in
    serve | monitor | ticker | check | lock | hold | guard | drain | rounds | visit)
        [ $# -gt 0 ] || set -- serve
        "$@"
        ;;
    *)
        warn "unknown role $1"
        exit 2
        ;;
esac
