package localgce

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"
)

// Instance is a VM as Google's APIs show it: the one source of the metadata server's tree and of the Compute API's
// resources.
type Instance struct {
	// ID is never given twice: a recreated VM has a new one.
	ID         uint64
	Name, Zone string
	Address    netip.Addr
	// Endpoint, if valid, is the balanced address that is forwarded to the VM.
	Endpoint netip.Addr
	// Status is the Compute API's: RUNNING, STOPPING, STOPPED, TERMINATED. LastStop is when it was last stopped; zero:
	// never.
	Status     string
	LastStop   time.Time
	Attributes map[string]string
	Labels     map[string]string
	Created    time.Time
	DataDisk   Disk
	// Maintenance is the maintenance-event key: NONE where empty.
	Maintenance string
	// Shown are fields of the Compute API's resource in place of the usual ones, for what a person has set otherwise.
	Shown map[string]any

	// hidden: the Compute API does not show the VM, and its data disk as attached to it all the same.
	hidden bool
	// accessMode is the data disk's, and alsoOn a further VM that it is attached to.
	accessMode, alsoOn string
}

// Disk is a data disk as Google's APIs show it.
type Disk struct {
	// ID is never given twice: an emptied disk has a new one.
	ID      uint64    `json:"id"`
	Name    string    `json:"name"`
	Bytes   int64     `json:"bytes"`
	Created time.Time `json:"created"`
	// Shown is as Instance's, for the disk's own resource.
	Shown map[string]any `json:"-"`
}

const (
	machineType  = "e2-standard-2"
	accountEmail = "default"
)

// newID is a random id as GCE's are: numeric, 19 digits at most.
func newID() uint64 { return 1e18 + rand.Uint64N(8e18) }

// serviceAccount is the e-mail address of the VMs' account.
func (i Instance) serviceAccount() string {
	return MastersAccount()
}

// named keeps the keys of attributes as they are, where all others are camel-cased in JSON.
type named map[string]string

// tree is the metadata server's content below /computeMetadata/v1/, with the keys of its paths.
func (i Instance) tree() map[string]any {
	zone := fmt.Sprintf("projects/%d/zones/%s", ProjectNumber, i.Zone)
	account := map[string]any{
		"aliases": []string{accountEmail}, "email": i.serviceAccount(),
		"scopes": []string{"https://www.googleapis.com/auth/cloud-platform"},
		"token":  accessToken{},
	}
	maintenance := i.Maintenance
	fallback(&maintenance, "NONE")
	return map[string]any{
		"instance": map[string]any{
			"attributes":         named(i.Attributes),
			"cpu-platform":       "Intel Broadwell",
			"description":        "",
			"disks":              i.diskTree(),
			"hostname":           i.Name + "." + i.Zone + ".c." + ProjectID + ".internal",
			"id":                 i.ID,
			"image":              "",
			"machine-type":       fmt.Sprintf("projects/%d/machineTypes/%s", ProjectNumber, machineType),
			"maintenance-event":  maintenance,
			"name":               i.Name,
			"network-interfaces": []any{i.interfaceTree()},
			"preempted":          "FALSE",
			"scheduling": map[string]any{"automatic-restart": "TRUE", "on-host-maintenance": "MIGRATE",
				"preemptible": "FALSE"},
			"service-accounts": map[string]any{accountEmail: account, i.serviceAccount(): account},
			"tags":             []string{},
			"zone":             zone,
		},
		"project": map[string]any{
			"attributes":         named{},
			"numeric-project-id": uint64(ProjectNumber),
			"project-id":         ProjectID,
		},
	}
}

func (i Instance) diskTree() []any {
	entry := func(index int, device string) any {
		return map[string]any{"device-name": device, "index": uint64(index), "interface": "SCSI", "mode": "READ_WRITE",
			"type": "PERSISTENT-BALANCED"}
	}
	return []any{entry(0, "persistent-disk-0"), entry(1, DeviceName)}
}

func (i Instance) interfaceTree() any {
	forwarded := []string{}
	if i.Endpoint.IsValid() {
		forwarded = append(forwarded, i.Endpoint.String())
	}
	return map[string]any{
		"access-configs": []any{}, "forwarded-ips": forwarded, "ip": i.Address.String(), "ip-aliases": []string{},
		"mac": mac(i.Address), "mtu": uint64(mtu), "network": fmt.Sprintf("projects/%d/networks/default",
			ProjectNumber),
		"target-instance-ips": []string{},
	}
}
