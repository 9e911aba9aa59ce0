# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Read bench/policy/rows and bench/policy/workloads; for bench/run and
# bench/policy/run, which have a die().
declare -A policy_workloads=()

# Lines "NAME TOPOLOGY STATES ARGUMENT..."
policy_read_workloads() { # FILE
	local name arguments
	while read -r name arguments; do
		[[ -z $name || $name == \#* ]] || policy_workloads[$name]=$arguments
	done < "$1"
}

policy_check_row() { # AT WORKLOAD LRUS RATES FIGURE GOAL
	local at=$1 word
	[ -n "$6" ] || die "$at: seven fields are needed, see the head of the file"
	[ -n "${policy_workloads[$2]:-}" ] ||
		die "$at: no workload '$2'; have: ${!policy_workloads[*]}"
	for word in ${3//,/ }; do
		[[ $word =~ ^(classic|mglru)$ ]] || die "$at: no LRU '$word'; have: classic mglru"
	done
	for word in ${4//,/ }; do
		[[ $word =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "$at: rate '$word' is not a number of seconds"
	done
	[[ $5 =~ ^(cost|worst|filled|share(:[0-9]+)?|promoted|late(:mean)?|cold|evicted|kept:(file|anon))$ ]] ||
		die "$at: no figure '$5', see the head of the file"
	[[ $6 =~ ^(-|[\<\>]=[0-9.]+)$ ]] || die "$at: goal '$6': <=N, >=N or -"
}

# The rows, all fields, checked.
policy_rows() { # FILE
	local name groups workload lrus rates figure goal
	while read -r name groups workload lrus rates figure goal; do
		[[ -z $name || $name == \#* ]] && continue
		policy_check_row "$1: row '$name'" "$workload" "$lrus" "$rates" "$figure" "$goal"
		echo "$name $groups $workload $lrus $rates $figure $goal"
	done < "$1"
}
