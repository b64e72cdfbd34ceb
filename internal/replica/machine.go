package replica

import (
	"net/netip"
	"time"
)

// VM is a VM as the Compute API shows it.
type VM struct {
	Place
	// InstanceID is GCE's numeric id, never given twice.
	InstanceID string
	// Status is GCE's word: PROVISIONING, STAGING, RUNNING, STOPPING, SUSPENDING, SUSPENDED, REPAIRING, STOPPED,
	// TERMINATED.
	Status string
	// LastStop is when it was last stopped, by GCE's clock; zero: GCE does not say, or not in RFC 3339.
	LastStop time.Time
	// Addresses are the internal addresses of its interfaces, nic0 first.
	Addresses []netip.Addr
	// Disks are attached to it, the boot disk too.
	Disks []AttachedDisk
}

// AttachedDisk is a disk as its VM knows it.
type AttachedDisk struct {
	// Name is the disk's, DeviceName what the guest sees under /dev/disk/by-id/google-….
	Name       string
	DeviceName string
	// Source is the disk's URL, of a zone or of a region.
	Source string
}

// Disk is a persistent disk as the Compute API shows it.
type Disk struct {
	// ID is GCE's numeric id, never given twice: a disk that was made anew under the same name has another.
	ID string
	// Users are the VMs that it is attached to.
	Users []Place
	// Mode is who may attach it how; empty, or SingleWriter: one VM, as its only writer.
	Mode string
}

// SingleWriter is the mode of a disk that one VM at a time can write to.
const SingleWriter = "READ_WRITE_SINGLE"

// Interface is a network interface of this VM as its metadata has it.
type Interface struct {
	// MAC is the hardware address: of what the metadata says of an interface, the kernel knows it too.
	MAC string
	// Forwarded are the addresses of load balancers that deliver to this interface without changing the packets.
	Forwarded []netip.Prefix
	// SaysIPv6: Forwarded is whole for IPv6 too. Of an interface without IPv6 the metadata says nothing.
	SaysIPv6 bool
	// Others may be made local too, and are somebody else's to look after: alias ranges and target instances.
	Others []netip.Prefix
}

// LocalRoute is a route of the kernel by which this VM takes packets for its own.
type LocalRoute struct {
	Prefix netip.Prefix
	// Marked: it was made because the metadata names its addresses, by an agent of ours or by Google's.
	Marked bool
}
