	vu_dev->irq = rc;
	if (vu_dev->pdev->id >= 0 && vu_dev->pdev->id < RAIDLAB_DEVICES) {
		raidlab_devices[vu_dev->pdev->id].device = vu_dev;
		time_travel_set_event_fn(&raidlab_devices[vu_dev->pdev->id].event,
					 raidlab_deliver);
	}
