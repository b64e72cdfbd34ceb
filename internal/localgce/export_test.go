package localgce

// DiskFolder is where the files of the data disks lie, as this process reaches it.
func (p *Project) DiskFolder() string { return p.depot.folder }

// FabricAndLink are the names that all names of a project's on the machine begin with, for the tests that look for traces.
func FabricAndLink(state string) (fabric, link string) {
	n := namesFor(state)
	return n.fabric(), n.hostLink()
}
