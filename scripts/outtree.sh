# shellcheck shell=bash
# Sourced after stages.sh: the tree that a stage is written to, and the edits
# that people make in it.
#
# state/last holds each touched file as we wrote it, state/stamp is as old as
# the copy of the base, state/base says which base.
# shellcheck disable=SC2154 # top, base, tmp, tree, state: lib.sh

# write_tree STAGE: make $tree the base plus STAGE. Only what differs is
# written. A file that is no longer as we wrote it was edited: the edit stays,
# and it is an error if the series has something new for that file.
write_tree() {
	local stage=$1 f new old
	copy_base
	[ -z "${FORCE:-}" ] || drop_edits
	{ files_in "$stage"; files_in "$state/last"; } | LC_ALL=C sort -u >"$tmp/touched"
	while read -r f; do
		new=$(either "$stage/$f" "$base/$f")
		old=$(either "$state/last/$f" "$base/$f")
		same "$tree/$f" "$new" || same "$tree/$f" "$old" || same "$new" "$old" ||
			die "$f was edited in ${tree#"$top"/}: 'make refresh' keeps the edit, 'make tree FORCE=1' drops it"
	done <"$tmp/touched"
	while read -r f; do
		write_file "$f" "$stage"
	done <"$tmp/touched"
}

write_file() {
	local f=$1 stage=$2 new old
	new=$(either "$stage/$f" "$base/$f")
	old=$(either "$state/last/$f" "$base/$f")
	if same "$tree/$f" "$new"; then
		:
	elif same "$new" "$old"; then
		note "NOTICE: $f: an edit in ${tree#"$top"/} is not in the series: 'make refresh' writes it back"
		return
	elif [ -e "$new" ]; then
		put "$new" "$tree/$f"
	else
		remove "$tree/$f"
	fi
	if [ ! -e "$stage/$f" ]; then
		remove "$state/last/$f"
	elif ! same "$state/last/$f" "$stage/$f"; then
		put "$stage/$f" "$state/last/$f"
	fi
}

remove() {
	rm -f "$1"
	rmdir -p --ignore-fail-on-non-empty "$(dirname "$1")" 2>/dev/null || :
}

# A full copy, once for each base. .git stays behind: the copy is no checkout.
copy_base() {
	if [ -d "$tree" ] && [ "$(cat "$state/base" 2>/dev/null)" = "$base" ] && ! base_moved; then
		return
	fi
	if [ -d "$tree" ] && [ -z "${FORCE:-}" ] && [ -n "$(edited_touched)" ]; then
		die "the base changed, and ${tree#"$top"/} has edits: 'make tree FORCE=1' drops them"
	fi
	note "copying the base to ${tree#"$top"/}"
	rm -rf "$state" "$tree"
	mkdir -p "$state/last" "$tmp/copy"
	find "$base" -mindepth 1 -maxdepth 1 ! -name .git -exec cp -a --reflink=auto -t "$tmp/copy" {} +
	mv "$tmp/copy" "$tree"
	touch "$state/stamp"
	echo "$base" >"$state/base"
}

# The pinned base never changes. One given by LINUX= may.
base_moved() {
	[ -n "${LINUX:-}" ] &&
		[ -n "$(find "$base" -name .git -prune -o -type f -cnewer "$state/stamp" -print -quit)" ]
}

# What was edited, one "M path", "A path" or "D path" a line. Files that the
# series touches are compared with what we wrote. The others are as in the base
# unless they were written, renamed or removed after the copy, which shows in
# their ctime or their directory's.
edits() {
	local f
	{
		edited_touched
		changed_since '! -type d' | while read -r f; do
			edited_other "$f"
		done
		changed_since '-type d' | while read -r f; do
			if [ -d "$base/$f" ]; then
				comm -23 <(names "$base/$f") <(names "$tree/$f") | sed "s|^|D ${f:+$f/}|"
			else
				(cd "$tree" && find "$f" ! -type d) | while read -r f; do
					edited_other "$f"
				done
			fi
		done
	} | LC_ALL=C sort -u | drop_ignored
}

edited_touched() {
	local f
	files_in "$state/last" | while read -r f; do
		if [ ! -e "$tree/$f" ]; then
			echo "D $f"
		elif ! same "$tree/$f" "$state/last/$f"; then
			echo "M $f"
		fi
	done
}

edited_other() {
	if [ -e "$state/last/$1" ]; then
		:
	elif [ ! -e "$base/$1" ] && [ ! -L "$base/$1" ]; then
		echo "A $1"
	elif ! same "$tree/$1" "$base/$1"; then
		echo "M $1"
	fi
}

changed_since() {
	# shellcheck disable=SC2086 # $1 is words of find
	(cd "$tree" && find . $1 -cnewer "$state/stamp" -printf '%P\n')
}

names() { find "$1" -mindepth 1 -maxdepth 1 ! -name .git -printf '%f\n' | LC_ALL=C sort; }

# Without new files that the kernel's .gitignore hides: objects, backups.
drop_ignored() {
	cat >"$tmp/found"
	git_plain init -q --bare "$tmp/ignore.git"
	sed -n 's/^A //p' "$tmp/found" | git_plain --git-dir="$tmp/ignore.git" --work-tree="$tree" \
		-C "$tree" check-ignore --no-index --stdin | sed 's/^/A /' >"$tmp/ignored" || :
	grep -vxF -f "$tmp/ignored" "$tmp/found" || :
}

drop_edits() {
	local kind f
	edits >"$tmp/drop"
	while read -r kind f; do
		note "dropped the edit of $f"
		if [ "$kind" = A ]; then
			remove "$tree/$f"
		elif [ -e "$state/last/$f" ]; then
			put "$state/last/$f" "$tree/$f"
		else
			rm -rf "${tree:?}/$f"
			cp -a "$base/$f" "$tree/$f"
			touch -c "$tree/$f"
		fi
	done <"$tmp/drop"
}
