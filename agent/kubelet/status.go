package kubelet

import (
	"time"

	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// Status is what the watch says of itself. It is plain data; its JSON keys are stable.
type Status struct {
	Units []UnitStatus `json:"units"`
	// Records are the last things that happened, the newest last.
	Records []Record `json:"records"`
}

// UnitStatus says how a unit stands.
type UnitStatus struct {
	Unit   string             `json:"unit"`
	State  kubeletwatch.State `json:"state"`
	Reason string             `json:"reason"`
	// Held is why nothing is done at the moment, where something would have to be.
	Held  string    `json:"held,omitempty"`
	Since time.Time `json:"since"`
	Counts
}
