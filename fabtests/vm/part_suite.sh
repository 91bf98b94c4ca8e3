# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # guest.sh and tap.sh set them
#
# part_suite.sh: the suites that know nothing of the guest, on each of $devices: the contract, faults, conformance, jobs; and some of
# it again with no more "${locked[@]}" memory than Debian allows.

# Both sides of all of them are processes of this guest on one device.
conf_programs="conf_auto conf_av conf_cq conf_end conf_getinfo conf_many conf_match conf_mix conf_mr conf_msg conf_multi conf_name
	conf_probe conf_proc conf_rma conf_source conf_stale conf_thread conf_wait"

part_contract() {
	suite "" env CONTRACT_DEVICES="${devices// /,}" CMOCKA_MESSAGE_OUTPUT=TAP "$build/fabtests/contract/contract_verbs"
}

# The contract behind dev/fault, and engines with faults.
part_faults() {
	local device
	suite "" env CONTRACT_FAULT=yes CONTRACT_DEVICES="${devices// /,}" CMOCKA_MESSAGE_OUTPUT=TAP \
		"$build/fabtests/contract/contract_verbs"
	for device in $devices; do
		limit=900 suite "$device: " env FAULT_DEVICE="$device" CMOCKA_MESSAGE_OUTPUT=TAP "$build/fabtests/fault/test_fault_verbs"
	done
}

part_conf() {
	local device program
	for device in $devices; do
		with "$device"
		for program in $conf_programs; do
			suite "$device: $program: " "${on[@]}" "$build/fabtests/conf/$program"
		done
	done
}

part_jobs() {
	local device
	for device in $devices; do
		with "$device"
		suite "$device: " "${on[@]}" "$here/job.sh" "$(address_of "$device")"
	done
}

# Several links for each peer, with parts as short as they may be.
part_sides() {
	local device program
	for device in $devices; do
		with "$device"
		on+=(FI_RVCM_NUM_LINKS=3 FI_RVCM_STRIPE_SIZE=4096)
		for program in conf_mix conf_msg conf_proc conf_rma; do
			suite "$device, 3 links: $program: " "${on[@]}" "$build/fabtests/conf/$program"
		done
		suite "$device, 3 links: " "${on[@]}" "$here/job.sh" "$(address_of "$device")" exchange
	done
}

# One link at most for each process: they take turns.
part_few() {
	local device
	for device in $devices; do
		with "$device"
		on+=(FI_RVCM_MAX_LINKS=1)
		suite "$device, one link at most: conf_many: " "${on[@]}" "$build/fabtests/conf/conf_many"
	done
}

# What a user of Debian may lock; siw counts every registration, and root's too.  rxe does not hold root to it.
locked=(bash -c 'ulimit -l 8192 && exec "$@"' -)

part_memlock() {
	local program
	with siw0
	# One message of conf_msg, as many as conf_mix has under way, and all that conf_proc does together are longer than that.
	for program in conf_mix conf_msg conf_proc; do
		suite "siw0, 8 MiB of locked memory: $program: " "${locked[@]}" "${on[@]}" "$build/fabtests/conf/$program"
	done
	suite "siw0, 8 MiB of locked memory: " "${locked[@]}" "${on[@]}" "$here/job.sh" "$(address_of siw0)" exchange
}
