package localgce

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/names"
)

// record is what a project remembers of a VM, also over its own death.
type record struct {
	Name  string `json:"name"`
	Zone  string `json:"zone"`
	Index int    `json:"index"` // names its port; never given twice
	// Slot names what the VM has on the machine: its name, or where a VM of that name was left running, one with the
	// index.
	Slot string `json:"slot"`
	// Left is not 0 for a VM that runs on after it was recreated: its ordinal among those of its name.
	Left int `json:"left,omitempty"`
	// Lost: and it cannot be started again, because its instance runs on another host.
	Lost bool `json:"lost,omitempty"`
	// ID is the instance id: a new one for each recreation.
	ID      uint64     `json:"id"`
	Address netip.Addr `json:"address"`
	// ExternalIP is the reserved address that leads to it.
	ExternalIP netip.Addr        `json:"externalIP,omitzero"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Created    time.Time         `json:"created"`
	Spot       bool              `json:"spot,omitempty"`
	Disk       volume            `json:"disk"`
	// Labels are its own: the cluster's alone where it was not made by the Compute API. Made is how that was asked.
	Labels map[string]string `json:"labels,omitzero"`
	Made   instance.Made     `json:"made,omitzero"`
	// LastStop is when it was last powered off; zero: never.
	LastStop time.Time `json:"lastStop,omitzero"`
}

// key is how commands call the VM: its name, or name.1 for the first VM of that name that was left running. No name of
// GCE's has a dot.
func (r *record) key() string { // not a copy: the other fields change meanwhile
	if r.Left > 0 {
		return fmt.Sprintf("%s.%d", r.Name, r.Left)
	}
	return r.Name
}

// saved is state.json. It is written before anything that it tells of is acquired. What a project holds on the machine
// needs no entry: all names come from the state folder (names), so a sweep finds it without.
type saved struct {
	Config Config   `json:"config"`
	VMs    []record `json:"vms"`
	// Disks are those that no VM has; Snapshots are copies of disks.
	Disks     []volume   `json:"disks,omitempty"`
	Snapshots []snapshot `json:"snapshots,omitempty"`
}

func readSaved(n names.Names) (s saved, err error) {
	b, err := os.ReadFile(n.StateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", n.StateFile(), err)
	}
	return s, err
}

// write replaces state.json. It need not survive a power cut: nothing that it tells of does.
func (s saved) write(n names.Names) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(n.StateFile()+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(n.StateFile()+".new", n.StateFile())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", n.StateFile(), err)
	}
	return nil
}
