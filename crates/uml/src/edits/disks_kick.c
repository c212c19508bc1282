		if (raidlab_kick(vu_dev->pdev->id, virtqueue_get_vring(vq)->avail->idx))
			return true;
		return vhost_user_set_vring_state(vu_dev, VHOST_USER_VRING_KICK,
