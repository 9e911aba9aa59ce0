# shellcheck shell=bash
# Sourced by every script: where things are, and how the scripts speak.
# shellcheck disable=SC2034 # used by those who source this

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
prog=${0##*/}
case $top in
*[[:space:]]*) echo "$prog: '$top' has a space in it, which the kernel's build does not take: move it" >&2; exit 1 ;;
esac
cache=$top/out/cache
src=$top/out/src

# Every failure is one line: what is wrong and what to do about it.
die() { printf '%s: %s\n' "$prog" "$*" >&2; exit 1; }
progress() { [ -n "${CI:-}" ] || [ -t 2 ] || return 0; printf '%s: %s\n' "$prog" "$*" >&2; }
note() { printf '%s: %s\n' "$prog" "$*" >&2; }

# What a run would leave behind is gone on any exit; what one left that was
# killed outright, some hours later.
trash=()
sweep() { [ ${#trash[@]} -eq 0 ] || rm -rf -- "${trash[@]}"; }
trap sweep EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A scratch directory under out/, on the same file system as what it becomes.
scratch() {
	mkdir -p "$out"
	find "$out" -maxdepth 1 -name 'tmp.*' -mmin +300 -exec rm -rf {} +
	tmp=$(mktemp -d "$out/tmp.XXXXXX")
	trash+=("$tmp")
}

# lock FILE: one run at a time; held until this script and its children end.
lock() {
	mkdir -p "$(dirname "$1")"
	exec 9>"$1"
	flock -n 9 || { note "waiting for another run to end"; flock 9; }
}

# git without the user's configuration, so that the output depends on nothing.
git_plain() {
	GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 git "$@"
}

pin() { sed -n "s/^$1=//p" "$top/KERNEL"; }

# Sets base (the unpatched tree, never written to) and out (where everything
# made from it goes: LINUX= has its own place, so that two bases never mix).
find_base() {
	local v
	if [ -z "${LINUX:-}" ]; then
		"$top/scripts/fetch" || exit 1
		base=$(readlink -f "$src/pin-$(pin version)")
		return
	fi
	v=$(sed -n 's/^\(VERSION\|PATCHLEVEL\) = //p' "$base/Makefile" 2>/dev/null | paste -sd. || :)
	[ "$v" = 7.3 ] ||
		die "LINUX=$LINUX is ${v:+Linux $v, }not a Linux 7.3 tree: give one, or leave LINUX= out for the pinned one"
	[[ ! -e $base/.config && ! -d $base/include/config ]] ||
		die "LINUX=$LINUX has been built in: run 'make mrproper' there, or give a clean checkout"
}

out=$top/out
if [ -n "${LINUX:-}" ]; then
	base=$(realpath -m -- "$LINUX")
	out=$top/out/linux-$(basename -- "$base")-$(printf %s "$base" | cksum | cut -d' ' -f1)
fi
tree=$out/tree
state=$out/state
log=$out/log
