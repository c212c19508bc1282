/*
 * Beside the time, guest and calendar share what they would otherwise tell each other by
 * a message each: the guest's kicks since the time last moved, and the devices that
 * interrupt the guest when it is run next.
 */
#define RAIDLAB_AT	1024
#define RAIDLAB_DEVICES	64
#define RAIDLAB_KICKS	700
/* In its capabilities the guest says that it does so. */
#define RAIDLAB_SHARES	0x80000000u

struct raidlab_shared {
	u32 offered;
	u32 kicks;
	u32 interrupts;
	u32 interrupting[RAIDLAB_DEVICES];
	struct {
		u16 device;
		u16 available;
	} kick[RAIDLAB_KICKS];
};

static struct raidlab_shared *raidlab_shared;

bool raidlab_kick(u32 device, u16 available);
struct time_travel_event *raidlab_interrupt(u32 device);

static void time_travel_setup_shm(int fd, u16 id)
{
