# Progress lines and failures, the same in every script. Sourced, not run; sets strict mode.
#
# A step is announced when it starts, with the time since the script began, so that whoever reads a
# log sees where a run is, and what it was doing when it failed.

set -euo pipefail

progress_start=$(date +%s)
progress_step=0
progress_steps=${progress_steps:-0}
progress_now=""

elapsed() {
    local seconds=$(($(date +%s) - progress_start))
    printf '%02d:%02d' $((seconds / 60)) $((seconds % 60))
}

# step TEXT: announce the next step.
step() {
    progress_step=$((progress_step + 1))
    progress_now=$*
    if [ "$progress_steps" -gt 0 ]; then
        printf '\n==> [%d/%d, %s] %s\n' "$progress_step" "$progress_steps" "$(elapsed)" "$*"
    else
        printf '\n==> [%s] %s\n' "$(elapsed)" "$*"
    fi
}

# note TEXT: something worth knowing, within a step.
note() {
    printf '    %s\n' "$*"
}

# fail TEXT: say why and stop.
fail() {
    printf '\nFAILED: %s\n' "$*" >&2
    trap - EXIT
    exit 1
}

# Whatever ends a script early is named last, where a log's reader looks first.
progress_exit() {
    local code=$?
    if [ "$code" -ne 0 ]; then
        printf '\nFAILED after %s, in: %s (exit code %d)\n' "$(elapsed)" "${progress_now:-start}" "$code" >&2
    fi
}
trap progress_exit EXIT
