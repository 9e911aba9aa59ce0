// SPDX-License-Identifier: GPL-2.0
/*
 * A virtual machine whose memory is a file. KVM marks the pages that its guest
 * touches while it holds mmu_lock: that counts for the LRU, but nothing may be
 * recorded there, since who runs the machine has mapped them. Needs CONFIG_KVM
 * and a CPU for it; lockdep and the check for sleeping in atomic context judge
 * where they are built in.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "promote_test.h"

#define FILE_BYTES (512UL << 10)
/* A tmpfs is on the LRU of anonymous memory. */
#define ACTIVE "nr_active_anon"
/* Guest physical addresses: the code, and above it the file. */
#define CODE_ADDRESS 0
#define FILE_ADDRESS 0x10000
enum { CODE_SLOT, FILE_SLOT };

/*
 * Real mode. In: AX, the segment of the file; CX, its number of pages of 4 KiB,
 * which are 0x100 paragraphs. Out: DL, the sum of the first bytes of its pages.
 */
static const unsigned char guest_code[] = {
	0x8e, 0xd8,			/* next: mov ds, ax */
	0x02, 0x16, 0x00, 0x00,		/*       add dl, [0] */
	0x05, 0x00, 0x01,		/*       add ax, 0x100 */
	0xe2, 0xf5,			/*       loop next */
	0xf4,				/*       hlt */
};

struct machine {
	struct promote_file *file;
	void *code, *memory;
	int kvm, vm, vcpu;
	struct kvm_run *run;
	size_t run_size;
};

static int set_slot(struct machine *machine, int slot, unsigned long address,
		    void *memory, size_t size)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot,
		.guest_phys_addr = address,
		.memory_size = size,
		.userspace_addr = (unsigned long)memory,
	};

	return ioctl(machine->vm, KVM_SET_USER_MEMORY_REGION, &region) ?
	       -errno : 0;
}

/*
 * Memory that can be written, and is: then KVM gets at the pages without GUP
 * marking them. Nothing else here marks any, neither do faults of a tmpfs.
 */
static int map_memory(struct machine *machine)
{
	struct promote_file *file = machine->file;
	long page = sysconf(_SC_PAGESIZE);
	char *memory;
	size_t at;

	memory = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		      file->fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	for (at = 0; at < file->size; at += page)
		__atomic_store_n(memory + at,
				 __atomic_load_n(memory + at, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
	machine->memory = memory;
	return 0;
}

static int load_code(struct machine *machine)
{
	size_t size = sysconf(_SC_PAGESIZE);

	machine->code = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (machine->code == MAP_FAILED)
		return -errno;
	memcpy(machine->code, guest_code, sizeof(guest_code));
	return set_slot(machine, CODE_SLOT, CODE_ADDRESS, machine->code, size);
}

/* The code and the data segment start at 0; the guest sets the latter. */
static int set_segments(struct machine *machine)
{
	struct kvm_sregs sregs;

	if (ioctl(machine->vcpu, KVM_GET_SREGS, &sregs))
		return -errno;
	sregs.cs.base = CODE_ADDRESS;
	sregs.cs.selector = 0;
	return ioctl(machine->vcpu, KVM_SET_SREGS, &sregs) ? -errno : 0;
}

static int machine_start(struct machine *machine, struct promote_file *file)
{
	machine->file = file;
	machine->vm = ioctl(machine->kvm, KVM_CREATE_VM, 0);
	if (machine->vm < 0 || map_memory(machine))
		return -errno;
	machine->vcpu = ioctl(machine->vm, KVM_CREATE_VCPU, 0);
	if (machine->vcpu < 0)
		return -errno;
	machine->run_size = ioctl(machine->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	machine->run = mmap(NULL, machine->run_size, PROT_READ | PROT_WRITE,
			    MAP_SHARED, machine->vcpu, 0);
	if (machine->run == MAP_FAILED || load_code(machine))
		return -errno;
	return set_segments(machine);
}

/* The last reference to the machine takes it down; the file is unmapped. */
static void machine_end(struct machine *machine)
{
	munmap(machine->run, machine->run_size);
	munmap(machine->code, sysconf(_SC_PAGESIZE));
	munmap(machine->memory, machine->file->size);
	close(machine->vcpu);
	close(machine->vm);
	machine->vm = -1;
}

static unsigned char sum_of_first_bytes(struct machine *machine)
{
	const unsigned char *memory = machine->memory;
	unsigned char sum = 0;
	size_t at;

	for (at = 0; at < machine->file->size; at += 4096)
		sum += memory[at];
	return sum;
}

static int run_guest(struct machine *machine)
{
	struct kvm_regs regs = {
		.rax = FILE_ADDRESS >> 4,
		.rcx = machine->file->size / 4096,
		.rip = CODE_ADDRESS,
		.rflags = 2,
	};

	if (ioctl(machine->vcpu, KVM_SET_REGS, &regs) ||
	    ioctl(machine->vcpu, KVM_RUN, 0))
		return -errno;
	if (machine->run->exit_reason != KVM_EXIT_HLT)
		return -EIO;
	if (ioctl(machine->vcpu, KVM_GET_REGS, &regs))
		return -errno;
	return (regs.rdx & 0xff) == sum_of_first_bytes(machine) ? 0 : -EBADMSG;
}

/* The guest takes a fault for every page: its page tables start empty. */
static int guest_passes(struct machine *machine, int passes)
{
	int i, err = 0;

	for (i = 0; i < passes && !err; i++) {
		err = set_slot(machine, FILE_SLOT, FILE_ADDRESS,
			       machine->memory, machine->file->size);
		err = err ? err : run_guest(machine);
		err = err ? err : set_slot(machine, FILE_SLOT, FILE_ADDRESS,
					   machine->memory, 0);
		usleep(PROMOTE_GAP_US);
	}
	return err;
}

FIXTURE(guest)
{
	struct promote_test t;
	struct machine machine;
};

PROMOTE_LRU_VARIANTS(guest);

FIXTURE_SETUP(guest)
{
	self->machine.vm = -1;
	PROMOTE_TEST_START(variant->lru_gen);
	self->machine.kvm = open("/dev/kvm", O_RDWR);
	if (self->machine.kvm < 0)
		SKIP(return, "no CONFIG_KVM, or no virtualization on this CPU");
	ASSERT_EQ(0, promote_tmpfs_start(self->t.tmpfs, NULL));
	ASSERT_EQ(0, promote_file_make_written(&self->t.file, FILE_BYTES,
					       self->t.lower));
}

FIXTURE_TEARDOWN(guest)
{
	if (self->machine.vm >= 0)
		machine_end(&self->machine);
	close(self->machine.kvm);
	promote_test_end(&self->t);
}

TEST_F_TIMEOUT(guest, marks_under_mmu_lock, PROMOTE_TIMEOUT)
{
	struct promote_where where;
	long active;

	/* What the guest does counts for the LRU: it takes the file for hot. */
	ASSERT_EQ(0, machine_start(&self->machine, &self->t.file));
	promote_flush_lru();
	active = promote_node_stat(self->t.lower, ACTIVE);
	ASSERT_EQ(0, guest_passes(&self->machine, PROMOTE_WARM_PASSES));
	promote_flush_lru();
	if (variant->lru_gen[0] == 'n')
		EXPECT_LE(active + self->t.file.nr * 9 / 10,
			  promote_node_stat(self->t.lower, ACTIVE));
	machine_end(&self->machine);

	/* One read notes the time, so that what the guest touches is hot. */
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, 1));
	promote_count(&self->t.before);
	ASSERT_EQ(0, machine_start(&self->machine, &self->t.file));
	ASSERT_EQ(0, guest_passes(&self->machine, PROMOTE_WARM_PASSES));
	EXPECT_NOTHING_DONE();
	machine_end(&self->machine);
	EXPECT_NOTHING_DONE();
	ASSERT_EQ(0, promote_file_where(&self->t.file, &where));
	EXPECT_EQ(self->t.file.nr, where.on_node[self->t.lower]);

	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

TEST_HARNESS_MAIN
