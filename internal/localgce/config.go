package localgce

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/localgce/guest"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/latency"
	"github.com/quorate/quorate/internal/localgce/network"
)

// What is the same in every project.
const (
	ProjectID     = instance.ProjectID
	ProjectNumber = instance.ProjectNumber
	BucketName    = instance.BucketName
	DeviceName    = instance.DeviceName
)

// Agent and Bind are what a Config takes of a VM's inside, Image what a boot disk is made of.
type (
	Agent = guest.Agent
	Bind  = guest.Bind
	Image = instance.Image
)

// Config describes a project. Only State and VMs have no default.
type Config struct {
	// State is the folder that holds the project's files: state.json, disks, logs, the socket. Start makes it absolute.
	State string `json:"state"`
	// Cluster is the value of each VM's label quorate-cluster.
	Cluster string `json:"cluster"`
	// Subnet is the VMs' range: 10.240.0.0/24 where not given. The first address is the fabric's; the one after the
	// range's end, plus one, is the host's (10.240.1.1).
	Subnet netip.Prefix `json:"subnet"`
	// Endpoint is the balanced address, inside Subnet: the 100th where not given.
	Endpoint netip.Addr `json:"endpoint"`
	// NoHostRoute leaves the host's network alone: the project cannot be reached from the host, and needs no free
	// range.
	NoHostRoute bool `json:"noHostRoute,omitempty"`
	// Kind is what the VMs are: ProcessVMs where not given.
	Kind Kind `json:"kind,omitempty"`
	// Image is the root.tar of a baked image, from which SystemdVMs boot. It is unpacked into the folder Cache, once
	// for all projects.
	Image string `json:"image,omitempty"`
	Cache string `json:"cache,omitempty"`
	// NamesAndTime makes the metadata server's address answer DNS and NTP, as Google's does. Otherwise a VM that asks
	// is told at once that nobody serves either.
	NamesAndTime bool `json:"namesAndTime,omitempty"`
	// Prompt makes the Compute API and the bucket answer at once. Otherwise they take the time that Google's take.
	Prompt bool `json:"prompt,omitempty"`
	// Masked are units of the image that SystemdVMs do without.
	Masked []string `json:"masked,omitempty"`
	// Zones are those in which the Compute API makes VMs and disks: any where none is given. Images are those that VMs
	// can be made of: quorate-master, of a family of the same name, where none is given. All boot the same.
	Zones  []string `json:"zones,omitempty"`
	Images []Image  `json:"images,omitempty"`
	// VMs are created and started by Start.
	VMs []VMConfig `json:"vms"`
	// Attributes are instance attributes of every VM.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Agent is the one unit that a VM runs.
	Agent guest.Agent `json:"agent"`
	// Binds are shown to every VM.
	Binds []guest.Bind `json:"binds,omitempty"`
	// DiskSize is the size of a new data disk in bytes (sparse): 4 GiB where not given.
	DiskSize int64 `json:"diskSize"`
	// Reflink puts the data disks where a file is copied at one instant, also while it is written to: TearDiskByCopy
	// needs it, and SnapshotDisk and CloneDisk of a disk in use then take what a power cut would leave. Where the state
	// folder's file system cannot, they lie on an XFS volume in a file of that folder, on which a sync takes about
	// twice as long.
	Reflink bool `json:"reflink,omitempty"`
	// BeforeBucket, if not nil, makes of the bucket what serves in its place, for who counts requests.
	BeforeBucket func(http.Handler) http.Handler `json:"-"`
	// Log gets one line a change; nil discards.
	Log *slog.Logger `json:"-"`
	// Progress, if not nil, gets lines for a person while Start works.
	Progress func(string) `json:"-"`
}

// VMConfig describes one VM. Name is unique in the project, which GCE asks only within a zone.
type VMConfig struct {
	Name string `json:"name"`
	Zone string `json:"zone"`
	// Address is in the subnet; the next free one from the 11th on where not given.
	Address netip.Addr `json:"address,omitzero"`
	// Spot makes it a Spot VM: it has 30 s to stop, and not Agent.StopTimeout.
	Spot bool `json:"spot,omitempty"`
	// Attributes are instance attributes of this VM and win over the project's.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// TimerSlack is the TimerSlackNSec of quorate.service.
const TimerSlack = 500 * time.Microsecond

// GCE cuts the power so long after it asked a VM to stop, of a Spot VM sooner.
const stopTimeout, spotStopTimeout = 120 * time.Second, 30 * time.Second

// withDefaults fills what is not given. It touches no file.
func (c Config) withDefaults() (Config, error) {
	abs, err := filepath.Abs(c.State)
	if err != nil || c.State == "" {
		return c, fmt.Errorf("state folder %q: an absolute path cannot be made of it", c.State)
	}
	c.State = abs
	fallback(&c.Cluster, "quorate")
	fallback(&c.Subnet, netip.MustParsePrefix("10.240.0.0/24"))
	fallback(&c.DiskSize, 4<<30)
	fallback(&c.Agent.StopTimeout, stopTimeout)
	fallback(&c.Kind, ProcessVMs)
	if len(c.Agent.Command) == 0 {
		c.Agent.Command = []string{"/usr/local/bin/quorate", "agent"}
		fallback(&c.Agent.TimerSlack, TimerSlack)
		if c.Kind == SystemdVMs {
			// the journal is memory there, and a VM that died is to have left its logs
			c.Agent.Command = append(c.Agent.Command, "--log-dir", "/var/log/quorate")
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.BeforeBucket == nil {
		c.BeforeBucket = func(bucket http.Handler) http.Handler { return bucket }
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	if c.Subnet.Addr().Is4() {
		c.Subnet = c.Subnet.Masked()
		fallback(&c.Endpoint, network.Nth(c.Subnet.Addr(), 100))
	}
	return c, nil
}

func fallback[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// gceName is what GCE allows in names of instances and zones.
var gceName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// validate names every fault of a defaulted Config at once.
func (c Config) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !c.Subnet.Addr().Is4() || c.Subnet.Bits() > 25 || c.Subnet.Bits() < 16 {
		fault("subnet %s: an IPv4 range of /16 to /25 is needed", c.Subnet)
	} else if !c.Subnet.Contains(c.Endpoint) || c.Endpoint == c.gateway() {
		fault("endpoint %s: it must be an address in %s other than %s, which is the fabric's", c.Endpoint, c.Subnet,
			c.gateway())
	}
	systemd := c.Kind == SystemdVMs
	switch {
	case c.Kind != ProcessVMs && !systemd:
		fault("kind %q: %s and %s are known", c.Kind, ProcessVMs, SystemdVMs)
	case systemd && (c.Image == "" || c.Cache == ""):
		fault("image %q, cache %q: %s VMs need both", c.Image, c.Cache, SystemdVMs)
	case !systemd && (c.Image != "" || len(c.Masked) > 0):
		fault("image %q, masked %s: only %s VMs have an image", c.Image, listed(c.Masked), SystemdVMs)
	}
	if c.DiskSize < 16<<20 {
		fault("disk size %d: at least 16 MiB are needed", c.DiskSize)
	}
	if c.Agent.Watchdog < 0 || c.Agent.StopTimeout < 0 || c.Agent.TimerSlack < 0 {
		fault("agent: watchdog %s, stop timeout %s and timer slack %s must not be negative", c.Agent.Watchdog,
			c.Agent.StopTimeout, c.Agent.TimerSlack)
	}
	for _, b := range c.Binds {
		if !filepath.IsAbs(b.Guest) || b.Host == "" {
			fault("bind %q to %q: the path in the VM must be absolute", b.Host, b.Guest)
		}
	}
	faults = append(faults, c.vmFaults()...)
	return errors.Join(faults...)
}

func (c Config) vmFaults() (faults []error) {
	var names []string
	var addresses []netip.Addr
	for _, v := range c.VMs {
		switch {
		case !gceName.MatchString(v.Name) || !gceName.MatchString(v.Zone):
			faults = append(faults, fmt.Errorf("vm %q in zone %q: names start with a letter and hold lower-case "+
				"letters, digits and '-'", v.Name, v.Zone))
		case slices.Contains(names, v.Name):
			faults = append(faults, fmt.Errorf("vm %s is given twice", v.Name))
		}
		names = append(names, v.Name)
		if !v.Address.IsValid() {
			continue
		}
		if err := c.checkAddress(v.Address); err != nil {
			faults = append(faults, fmt.Errorf("vm %s: %w", v.Name, err))
		}
		if slices.Contains(addresses, v.Address) {
			faults = append(faults, fmt.Errorf("vm %s: address %s is given twice", v.Name, v.Address))
		}
		addresses = append(addresses, v.Address)
	}
	return faults
}

// checkAddress says whether a VM may have the address.
func (c Config) checkAddress(a netip.Addr) error {
	if !c.Subnet.Contains(a) || a == c.gateway() || a == c.Endpoint || a == c.Subnet.Addr() ||
		a == network.LastOf(c.Subnet) {
		return fmt.Errorf("address %s: it must be a host address in %s other than %s (fabric) and %s (endpoint)", a,
			c.Subnet, c.gateway(), c.Endpoint)
	}
	return nil
}

// times are how long Google's services take.
func (c Config) times() latency.Times {
	if c.Prompt {
		return latency.Times{}
	}
	return latency.Google
}

// gateway is the fabric's own address.
func (c Config) gateway() netip.Addr { return network.Gateway(c.Subnet) }

// computeURL is the Compute API's base, as the Cluster document's compute.endpoint wants it.
func (c Config) computeURL() string {
	return fmt.Sprintf("http://%s:%d/compute/v1/", c.gateway(), servicesPort)
}

// BucketFolder is where the bucket's objects are, as files of the same names.
func (c Config) BucketFolder() string { return filepath.Join(c.State, "buckets", instance.BucketName) }

// RecordURL is the bucket as the Cluster document's record.url wants it.
func (c Config) RecordURL() string {
	return fmt.Sprintf("gs://%s?endpoint=http://%s:%d", instance.BucketName, c.gateway(), servicesPort)
}

// servicesPort is where the fabric's address serves the Compute API and the bucket.
const servicesPort = 8080
