package localgce

import (
	"github.com/quorate/quorate/internal/localgce/names"
)

// DiskFolder is where the files of the data disks lie, as this process reaches it.
func (p *Project) DiskFolder() string { return p.depot.Folder }

// FabricAndLink are the names that all names of a project's on the machine begin with, for the tests that look for
// traces.
func FabricAndLink(state string) (fabric, link string) {
	n := names.For(state)
	return n.Fabric(), n.HostLink()
}

// MissingInotify is what a machine lacks for so many systemd VMs.
func MissingInotify(vms int) []string { return missingInotify(vms) }
