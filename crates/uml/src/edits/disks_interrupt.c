#define RAIDLAB_DEVICES	64

static struct raidlab_device {
	struct virtio_uml_device *device;
	struct time_travel_event event;
} raidlab_devices[RAIDLAB_DEVICES];

bool raidlab_kick(u32 device, u16 available);
struct time_travel_event *raidlab_interrupt(u32 device);

static void raidlab_deliver(struct time_travel_event *event)
{
	struct virtio_uml_device *device =
		container_of(event, struct raidlab_device, event)->device;

	device->vq_irq_vq_map |= 1;
	generic_handle_irq(device->irq);
}

struct time_travel_event *raidlab_interrupt(u32 device)
{
	BUG_ON(device >= RAIDLAB_DEVICES || !raidlab_devices[device].device);
	return &raidlab_devices[device].event;
}

static irqreturn_t vu_req_interrupt(int irq, void *data)
{
