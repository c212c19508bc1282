extern struct page *raidlab_clock_page;

static vm_fault_t raidlab_clock_fault(const struct vm_special_mapping *mapping,
				      struct vm_area_struct *vma, struct vm_fault *vmf)
{
	return vmf_insert_pfn(vma, vmf->address, page_to_pfn(raidlab_clock_page));
}

static const struct vm_special_mapping raidlab_clock_mapping = {
	.name = "[vvar]",
	.fault = raidlab_clock_fault,
};

int arch_setup_additional_pages(struct linux_binprm *bprm, int uses_interp)
{
