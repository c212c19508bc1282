	vma = _install_special_mapping(mm, um_vdso_addr - PAGE_SIZE, PAGE_SIZE,
		VM_READ|VM_WRITE|VM_SHARED|VM_MAYREAD|VM_MAYWRITE|VM_MAYSHARE|
		VM_PFNMAP|VM_DONTDUMP,
		&raidlab_clock_mapping);
	if (!IS_ERR(vma))
		vma = _install_special_mapping(mm, um_vdso_addr, PAGE_SIZE,
