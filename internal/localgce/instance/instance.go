// Package instance is what Google knows of a project's VMs and their disks, as values: the one source of the metadata
// server's answers and of the Compute API's. It also has what is the same in every project.
package instance

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// What is the same in every project.
const (
	// ProjectID and ProjectNumber are what Google's APIs call the project.
	ProjectID     = "quorate-local"
	ProjectNumber = 271828182845
	// DeviceName is a data disk's GCE device name. A VM mounts the disk at MountPoint.
	DeviceName = "quorate-data"
	MountPoint = "/var/lib/quorate"
	// BucketName is the bucket that is always there.
	BucketName = "record"
	// MachineType is the VMs', where nobody asks for another, ImageName the image of their boot disks.
	MachineType = "e2-standard-2"
	ImageName   = "quorate-master"
	// MTU is the network's, GCE's default.
	MTU = 1460
	// MetadataAddress is the metadata server's, in every VM.
	MetadataAddress = "169.254.169.254"
)

// VM is a VM as Google's APIs show it: the one source of the metadata server's tree and of the Compute API's
// resources.
type VM struct {
	// ID is never given twice: a recreated VM has a new one.
	ID         uint64
	Name, Zone string
	Address    netip.Addr
	// ExternalIP is the reserved address that leads to the VM alone; the zero value: none does.
	ExternalIP netip.Addr
	// Forwarded are the balanced addresses that are forwarded to the VM.
	Forwarded []netip.Addr
	// Status is the Compute API's: PROVISIONING, RUNNING, STOPPING, STOPPED, TERMINATED. LastStop is when it was last
	// stopped; zero: never.
	Status     string
	LastStop   time.Time
	Attributes map[string]string
	Labels     map[string]string
	Created    time.Time
	DataDisk   Disk
	Made       Made
	// Maintenance is the maintenance-event key: NONE where empty.
	Maintenance string
	// Spot: the VM may be stopped at any time, with 30 s for it.
	Spot bool
	// Shown are fields of the Compute API's resource in place of the usual ones, for what a person has set otherwise.
	Shown map[string]any
}

// Made is how a VM was asked for. Where it is empty, the VM is as localgce's own commands make it.
type Made struct {
	// DataGoes: the data disk is deleted with the VM.
	DataGoes bool `json:"dataGoes,omitempty"`
	// Image is what the boot disk was made of, as projects/P/global/images/N: ImageName where empty. Of Boot only what
	// differs from the usual is given; the disk's id is always the VM's less one.
	Image string `json:"image,omitempty"`
	Boot  Disk   `json:"boot,omitzero"`
	// Tags are the network tags, MachineType the last part of its link: MachineType where empty.
	Tags        []string `json:"tags,omitempty"`
	MachineType string   `json:"machineType,omitempty"`
	// Shown are further fields of the Compute API's resource, in place of the usual ones.
	Shown map[string]any `json:"shown,omitempty"`
}

// MachineType is the last part of its machine type's link.
func (i VM) MachineType() string { return cmp.Or(i.Made.MachineType, MachineType) }

// BootDisk is as old as the VM, and has its name and labels where it was not given others.
func (i VM) BootDisk() Disk {
	d := i.Made.Boot
	d.ID, d.Name, d.Bytes, d.Created = i.ID-1, cmp.Or(d.Name, i.Name), cmp.Or(d.Bytes, 10<<30), i.Created
	return d
}

// Disk is a data disk as Google's APIs show it.
type Disk struct {
	// ID is never given twice: an emptied disk has a new one.
	ID      uint64    `json:"id"`
	Name    string    `json:"name"`
	Bytes   int64     `json:"bytes"`
	Created time.Time `json:"created"`
	// Labels are the disk's own; nil: it has its VM's. Type is such as pd-ssd; empty: pd-balanced.
	Labels map[string]string `json:"labels,omitempty"`
	Type   string            `json:"type,omitempty"`
	// Shown is as a VM's, for the disk's own resource.
	Shown map[string]any `json:"-"`
}

// Image is what boot disks are made of. All images boot the same.
type Image struct {
	Name string `json:"name"`
	// Family is the one of which this image is the newest, unless a later one of the list is.
	Family string `json:"family,omitempty"`
	// State is ACTIVE where empty, or DEPRECATED or OBSOLETE.
	State string `json:"state,omitempty"`
}

// ImageLink is an image's partial link.
func ImageLink(name string) string { return "projects/" + ProjectID + "/global/images/" + name }

// NewID is a random id as GCE's are: numeric, 19 digits at most.
func NewID() uint64 { return 1e18 + rand.Uint64N(8e18) }

// MAC is GCE's: 42:01 and the address, so that neighbours' caches stay true when a VM is recreated.
func MAC(a netip.Addr) string {
	b := a.As4()
	return fmt.Sprintf("42:01:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}

// MastersAccount is the service account of the VMs.
func MastersAccount() string {
	return strconv.FormatUint(ProjectNumber, 10) + "-compute@developer.gserviceaccount.com"
}

// RegionOf is the region of a zone.
func RegionOf(zone string) string {
	if n := strings.LastIndexByte(zone, '-'); n > 0 {
		return zone[:n]
	}
	return zone
}
