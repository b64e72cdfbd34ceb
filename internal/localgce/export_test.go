package localgce

import "net/http"

// DiskFolder is where the files of the data disks lie, as this process reaches it.
func (p *Project) DiskFolder() string { return p.depot.folder }

// FabricAndLink are the names that all names of a project's on the machine begin with, for the tests that look for
// traces.
func FabricAndLink(state string) (fabric, link string) {
	n := namesFor(state)
	return n.fabric(), n.hostLink()
}

// MissingControllers is what a machine with that table of mounts, and those controllers in cgroup2, lacks for systemd
// VMs.
func MissingControllers(mounts string, unified ...string) []string {
	return missingControllers(hierarchiesIn(mounts), unified)
}

// MissingInotify is what it lacks for so many of them.
func MissingInotify(vms int) []string { return missingInotify(vms) }

// DropIn is what of quorate.service an agent's settings change in an image.
func DropIn(a Agent) string { return a.dropIn() }

// BehindFaults puts faults in front of a service that is served without a project, and returns how they are set.
func BehindFaults(s Service, h http.Handler) (http.Handler, func(Fault) error) {
	f := &faults{}
	nobody := func(*http.Request) string { return "" }
	return f.before(s, nobody, h), func(x Fault) error {
		if c, ok := h.(*ComputeServer); ok {
			x = c.asOfNow(x)
		}
		return f.put(s, x)
	}
}

// ServeNames and ServeTime answer at sockets of a test's own.
var ServeNames, ServeNameStreams, ServeTime = serveNames, serveNameStreams, serveTime
