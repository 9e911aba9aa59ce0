# shellcheck shell=bash
# Sourced after lib.sh: the series as data, and the trees it goes through.
#
# A patch is patches/NNNN-slug.patch: "Subject: ...", a blank line, the message,
# "Overlay: path" for each new file that the step brings in, a line "---", and
# the diffs of existing files. The new files are in the repository at the path
# that they have in the kernel. Stage N is every touched file after patch N.
# shellcheck disable=SC2154 # top, base, tmp: lib.sh

# What does not go upstream: these directories, and files at the top, except
# MAINTAINERS, which holds our entry and is merged into the kernel's.
house='^(patches|configs|vm|bench|scripts|out|debian|\.[^/]*)/|^[^/]*$'

nr_of() { local f=${1##*/}; echo "${f%%-*}"; }
patch_subject() { sed -n '1s/^Subject: *//p' "$1"; }
patch_message() { sed -e '1d' -e '/^---$/,$d' -e '/^Overlay:/d' "$1"; }
patch_overlays() { sed -n -e '/^---$/q' -e 's/^Overlay: *//p' "$1"; }
patch_hooks() { sed -e '1,/^---$/d' "$1"; }
patch_files() { patch_hooks "$1" | sed -n 's|^diff --git a/\(.*\) b/.*|\1|p'; }

# Same bytes and the same executable bit, or both absent.
same() {
	if [ ! -e "$1" ] || [ ! -e "$2" ]; then
		[ ! -e "$1" ] && [ ! -e "$2" ]
		return
	fi
	cmp -s "$1" "$2" || return 1
	if [ -x "$1" ]; then [ -x "$2" ]; else [ ! -x "$2" ]; fi
}

either() { if [ -e "$1" ]; then echo "$1"; else echo "$2"; fi; }
files_in() { [ ! -d "$1" ] || (cd "$1" && find . -type f -printf '%P\n' | LC_ALL=C sort); }

# put FROM TO: replace TO atomically, with a new time stamp and a plain mode.
put() {
	local mode=644
	[ ! -x "$1" ] || mode=755
	mkdir -p "$(dirname "$2")"
	install -m "$mode" "$1" "$2.tmp$$"
	mv -f "$2.tmp$$" "$2"
}

# New files in the repository that are meant for the kernel.
repo_overlays() {
	local f
	git -C "$top" -c core.quotePath=off ls-files -co --exclude-standard | LC_ALL=C sort -u |
		grep -Ev "$house" | while read -r f; do
		[ ! -e "$top/$f" ] || echo "$f"
	done
}

# Reads the series into patches[] (files, in order), claim[path] (the patch
# that brings a new file), hooked[path] (the patches that change a file),
# unclaimed[], and problems[] (what is wrong with it, one line each).
load_series() {
	local p nr f want=1
	patches=() unclaimed=() problems=()
	declare -gA claim=() hooked=()
	for p in "$top"/patches/[0-9][0-9][0-9][0-9]-*.patch; do
		[ -e "$p" ] || continue
		nr=$(nr_of "$p")
		if [ $((10#$nr)) -ne "$want" ]; then
			problems+=("patches/${p##*/}: expected number $(printf %04d "$want"): numbers run from 0001 without a gap")
		fi
		want=$((10#$nr + 1))
		load_patch "$p" "$nr"
		patches+=("$p")
	done
	while read -r f; do
		[ -n "${claim[$f]:-}" ] || unclaimed+=("$f")
	done < <(repo_overlays)
	if [ -e "$top/MAINTAINERS" ] && [ -z "${claim[MAINTAINERS]:-}" ]; then
		unclaimed+=(MAINTAINERS)
	fi
}

load_patch() {
	local p=$1 nr=$2 f name=patches/${1##*/}
	[ -n "$(patch_subject "$p")" ] ||
		problems+=("$name: the first line must be 'Subject: ...'")
	grep -qx -- --- "$p" ||
		problems+=("$name: no line '---' between the message and the diffs")
	while read -r f; do
		if [ -n "${claim[$f]:-}" ]; then
			problems+=("$f: claimed by $nr and ${claim[$f]}: drop one Overlay line")
		elif [ ! -f "$top/$f" ] || [ -L "$top/$f" ]; then
			problems+=("$name: Overlay: $f: there is no such file")
		elif [ "$f" != MAINTAINERS ] && [ -e "$base/$f" ]; then
			problems+=("$name: Overlay: $f: the base has this file: change it by a diff")
		elif [ "$f" != MAINTAINERS ] && grep -qE "$house" <<<"$f"; then
			problems+=("$name: Overlay: $f: does not belong in a kernel tree")
		fi
		claim[$f]=$nr
	done < <(patch_overlays "$p")
	while read -r f; do
		[ -f "$base/$f" ] ||
			problems+=("$name: $f is not in the base: new files are Overlay lines, not diffs")
		[ -z "${claim[$f]:-}" ] ||
			problems+=("$name: $f is an overlay file: edit it in place, no diff")
		hooked[$f]="${hooked[$f]:-}${hooked[$f]:+ }$nr"
	done < <(patch_files "$p")
	if patch_hooks "$p" | grep -qE '^(new file|deleted file|old mode|rename|copy|GIT binary) '; then
		problems+=("$name: a diff may only change files of the base, not add, remove or rename them")
	fi
}

# The first problem ends it. Unclaimed files are not one until they are mailed.
need_series() {
	load_series
	[ ${#problems[@]} -eq 0 ] || die "${problems[0]}"
}

# compose DIR: DIR/0000, DIR/0001, ... are the stages; last is the number of
# the last; drift[] says which hunks applied elsewhere than they say.
compose() {
	local dir=$1 p f nr prev=0000
	drift=()
	mkdir -p "$dir/0000"
	for f in "${!hooked[@]}" ${claim[MAINTAINERS]:+MAINTAINERS}; do
		(cd "$base" && cp --parents "$f" "$dir/0000")
	done
	for p in "${patches[@]}"; do
		nr=$(nr_of "$p")
		cp -a "$dir/$prev" "$dir/$nr"
		apply_hooks "$p" "$dir/$nr"
		while read -r f; do
			overlay "$f" "$dir/$nr"
		done < <(patch_overlays "$p")
		prev=$nr
	done
	# shellcheck disable=SC2034 # for those who source this
	last=$prev
}

overlay() {
	if [ "$1" = MAINTAINERS ]; then
		merge_maintainers "$2/MAINTAINERS" >"$tmp/maintainers"
		put "$tmp/maintainers" "$2/MAINTAINERS"
	else
		put "$top/$1" "$2/$1"
	fi
}

# No fuzz ever. An offset is drift too, but does no harm: it is noted.
apply_hooks() {
	local p=$1 dir=$2 name=patches/${1##*/} line file=
	patch_hooks "$p" >"$tmp/hooks"
	[ -s "$tmp/hooks" ] || return 0
	LC_ALL=C patch -d "$dir" -p1 --fuzz=0 -f -r - --no-backup-if-mismatch \
		<"$tmp/hooks" >"$tmp/patch.log" 2>&1 || :
	while read -r line; do
		case $line in
		'patching file '*) file=${line#patching file } ;;
		*' FAILED '*) die "$name: $file: ${line%.}: the base has drifted, or the patch is broken" ;;
		*'(offset '*) drift+=("$name: $file: ${line%.}") ;;
		*': **** '* | *'ignored'* | "can't find"*) die "$name: $line" ;;
		esac
	done <"$tmp/patch.log"
}

# Our entries, each where it makes the list least out of order: the kernel's
# own is not sorted everywhere.
merge_maintainers() {
	LC_ALL=C awk '
	BEGIN { n = 0 }
	function flush() { if (n || text) { sec[n] = text; title[n++] = t }; text = t = "" }
	FNR == 1 && FILENAME == ARGV[2] { flush(); base = n; own = 1 }
	/^[ \t]*$/ && own { if (text) flush(); next }
	own || start {
		if (text == "" || sep) { if (sep) flush(); t = toupper($0) }
		text = text $0 "\n"; sep = !own && /^[ \t]*$/; next
	}
	{ text = text $0 "\n" }
	/^Maintainers List/ { list = 1 }
	list && /^\.\. note/ { note = 1 }
	note && /^[ \t]*$/ { start = 1; flush() }
	END {
		flush()
		for (i = base; i < n; i++) {
			cost = best = 0; at = 1
			for (j = 1; j < base; j++) {
				cost += title[j] < title[i] ? -1 : 1
				if (cost < best) { best = cost; at = j + 1 }
			}
			before[at] = before[at] sec[i] "\n"
		}
		for (j = 0; j < base; j++) printf "%s%s", before[j], sec[j]
		printf "%s", before[base]
	}' "$1" "$top/MAINTAINERS"
}
