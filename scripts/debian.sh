#!/usr/bin/env bash
# debian.sh SUITE VERSION COMMAND...: run a command of this project in a Debian of another suite, for
# interpreters that this machine does not have: debian.sh sid 3.14 scripts/test_one.sh
#
# The suite lives in a folder of its own, made once by debootstrap (root is needed): $DEBIAN_ROOTS,
# else debian/ among what is built. The command sees this project as /src, the machine's Rust, and
# Python VERSION (with a `d` behind it: the debug build) as the main interpreter. Mounts are made in a
# namespace of their own and go when the command ends.

cd "$(dirname "$0")/.."
. scripts/progress.sh

[ $# -ge 3 ] || fail "usage: debian.sh SUITE VERSION COMMAND..."
suite=$1 version=$2
shift 2
[ "$(id -u)" -eq 0 ] || fail "root is needed, to make the folder and change into it"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"

target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && realpath "${CARGO_TARGET_DIR:-target}")
root=${DEBIAN_ROOTS:-$target/debian}/$suite
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
cargo_home=${CARGO_HOME:-$HOME/.cargo}
rustup_home=${RUSTUP_HOME:-$HOME/.rustup}

if [ ! -e "$root/made" ]; then
    step "Debian $suite, in $root"
    mkdir -p "$root"
    debootstrap --variant=minbase --include=ca-certificates,gcc,libc6-dev,make,tzdata "$suite" "$root" "$mirror" \
        >"$root.log" 2>&1 || fail "debootstrap; its log is $root.log"
    touch "$root/made"
fi
# Names and certificates, so that the registries this machine uses are reached from inside too.
cp /etc/resolv.conf "$root/etc/resolv.conf"
[ ! -e /etc/ssl/certs/ca-certificates.crt ] ||
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
for file in /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
    [ ! -f "$file" ] || cat "$file" >"$root/etc/pip.conf"
done

release=${version%d}
packages=(python"$release" python"$release"-venv python"$release"-dev libpython"$release"-testsuite)
[ "$release" = "$version" ] || packages+=(python"$release"-dbg)
if ! chroot "$root" dpkg -s "${packages[@]}" >/dev/null 2>&1; then
    step "Python $version"
    # A mirror that lags behind is of use still.
    chroot "$root" apt-get -o Acquire::Check-Valid-Until=false update -qq
    DEBIAN_FRONTEND=noninteractive chroot "$root" \
        apt-get install -y -qq --no-install-recommends "${packages[@]}" >>"$root.log" 2>&1 ||
        fail "apt-get install; its log is $root.log"
fi

for folder in src target cargo rustup; do mkdir -p "$root/$folder"; done
mkdir -p "$target/debian-$suite"
export root target suite cargo_home rustup_home
# shellcheck disable=SC2016
unshare --mount --propagation private bash -euc '
    mount --bind . "$root/src"
    mount --bind "$target/debian-$suite" "$root/target"
    mount --bind "$cargo_home" "$root/cargo"
    mount --bind "$rustup_home" "$root/rustup"
    mountpoint -q "$root/proc" || mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
    mountpoint -q "$root/dev" || mount --rbind /dev "$root/dev"
    exec chroot "$root" env -i LANG=C.UTF-8 HOME=/root CARGO_HOME=/cargo RUSTUP_HOME=/rustup \
        PATH=/cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        CARGO_TARGET_DIR=/target PROFILE="${PROFILE:-}" PYTHONMALLOC="${PYTHONMALLOC:-}" \
        PYTHON="python$0" VENV="/venv-$0" QUICKPICKLE_INTERPRETERS="" \
        sh -euc "cd /src; exec \"\$@\"" sh "$@"
' "$version" "$@"
