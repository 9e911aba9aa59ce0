# shellcheck shell=bash
# Sourced after lib.sh: configure and build the kernel in $tree.
# shellcheck disable=SC2154 # tree, log: lib.sh

export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970'
export KBUILD_BUILD_USER=promote KBUILD_BUILD_HOST=promote KBUILD_BUILD_VERSION=1
# Paths relative to here, so that another clone gets the same objects.
export CCACHE_BASEDIR=${CCACHE_BASEDIR-$top}
# A compiler run tells what it has read: no need to preprocess beforehand.
export CCACHE_DEPEND=${CCACHE_DEPEND-1}
export PYTHONDONTWRITEBYTECODE=1

# The user's CC= and LLVM= win; gcc through ccache otherwise.
kbuild() {
	local args=()
	if [ -n "${CC:-}" ]; then
		args+=("CC=$CC")
	elif [ -z "${LLVM:-}" ]; then
		args+=("CC=ccache gcc")
	fi
	# The jobs of the make that called us are not the kernel's.
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$tree" ${LLVM:+"LLVM=$LLVM"} \
		"${args[@]}" "-j$(nproc)" "$@"
}

# The first lines that say why, then where the rest is.
kbuild_failed() {
	grep -m 3 -E '(error:|undefined reference|No rule to make|\*\*\* [^[])' "$1" |
		sed 's/^/  /' >&2 || :
	die "$2 failed: see ${1#"$top"/}"
}

# kernel_config DIR FRAGMENT...: allnoconfig plus the fragments. What a
# fragment asks for and Kconfig refuses is an error. An option of the series
# that the tree does not know (yet) is left out.
kernel_config() {
	local dir=$1 f want line name
	shift
	want=$dir/fragments
	mkdir -p "$dir"
	for f; do
		if [ "$f" = release ]; then
			known_options "$top/configs/$f.config"
		else
			cat "$top/configs/$f.config"
		fi
	done >"$want"
	kbuild O="$dir" KCONFIG_ALLCONFIG="$want" allnoconfig >"$dir/config.log" 2>&1 ||
		kbuild_failed "$dir/config.log" "configuring $(basename "$dir")"
	while read -r line; do
		case $line in
		CONFIG_*=*) grep -qxF -- "$line" "$dir/.config" && continue ;;
		'# CONFIG_'*' is not set')
			name=${line#\# } name=${name%% *}
			grep -q "^$name=" "$dir/.config" || continue ;;
		*) continue ;;
		esac
		die "$(basename "$dir"): '$line' did not reach .config: a dependency is missing in configs/"
	done <"$want"
}

# The lines of a fragment whose option some Kconfig in the tree defines.
known_options() {
	local line name
	while read -r line; do
		name=${line%%=*} name=${name#CONFIG_}
		case $line in
		CONFIG_*) grep -rqE --include='Kconfig*' "^[[:space:]]*(menu)?config $name\$" \
			"$tree"/{mm,init,lib,kernel} || continue ;;
		esac
		echo "$line"
	done <"$1"
}

# kernel_make DIR TARGET...: build, with a line of progress every ten seconds.
kernel_make() {
	local name file ticker rc=0
	name=$(basename "$1")
	file=$log/build-$name.log
	mkdir -p "$log"
	: >"$file"
	ticker "$name" "$file" &
	ticker=$!
	kbuild O="$1" "${@:2}" >"$file" 2>&1 || rc=$?
	kill "$ticker" 2>/dev/null || :
	[ "$rc" -eq 0 ] || kbuild_failed "$file" "building $name"
}

ticker() {
	local start=$SECONDS nap
	exec 9>&- >/dev/null
	# A nap that outlives this would keep the lock and the caller's pipes.
	trap 'kill "$nap" 2>/dev/null; exit 0' TERM
	while sleep 10 & nap=$!; wait "$nap" && kill -0 $$ 2>/dev/null; do
		progress "$1: $(grep -c '^  [A-Z]' "$2" || :) steps, $((SECONDS - start)) s"
	done
}
