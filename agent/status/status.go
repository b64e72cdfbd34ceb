// Package status is what a replica reports of itself at one moment, and its metrics, which are printed from it.
//
// Status is plain data: `quorate status`, `quorate etcd explain`, the metrics and the report for people outside all say
// what it says. Its JSON keys, and the metrics' names and labels, are part of the interface.
//
// It finds nothing out: the agent gathers a Status, and who scrapes or asks causes that. Nothing is kept between two
// scrapes. It decides nothing, and what decides does not know it.
package status

import (
	"time"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/agent/datadisk"
	"github.com/quorate/quorate/agent/kubelet"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// Status is all that a replica reports of itself at one moment. `quorate status`, `quorate etcd explain` and the
// metrics are printed from it. It is plain data; its JSON keys are stable.
type Status struct {
	Replica Replica `json:"replica"`
	// Version is quorate's.
	Version string `json:"version,omitempty"`
	etcdmember.Report
	// Boot is how long what is done of this start took.
	Boot         Boot                `json:"boot"`
	Components   []supervisor.Status `json:"components"`
	Leases       []Lease             `json:"leases"`
	Certificates []certs.Expiry      `json:"certificates"`
	// Encryption is what this replica's apiserver is started with, whatever the document and the disk say by now; nil
	// before its first start.
	Encryption *certs.Encryption `json:"encryption,omitempty"`
	// Snapshots is nil until the member runs, and while the record shows no open epoch.
	Snapshots *Snapshots `json:"snapshots,omitempty"`
	// DataDisk is how large what the data directory is on is; nil until the disk can be used.
	DataDisk *datadisk.Size `json:"dataDisk,omitempty"`
	// Archives is nil until the boot is done.
	Archives *Archives `json:"archives,omitempty"`
	// Addons is what the add-on manager says of itself; nil where the document has no add-ons, and while it does not
	// answer.
	Addons *plan.Status `json:"addons,omitempty"`
	// PendingRestart is what the instance's document says otherwise than the one in force: it counts from the agent's
	// next start.
	PendingRestart []replica.Change `json:"pendingRestart,omitempty"`
	// Kubelet is what the watch of the kubelet and its runtime says; nil where nothing is watched.
	Kubelet *kubelet.Status `json:"kubelet,omitempty"`
	// LogLoss is nil while nothing of the agent's own log was lost. Of a component's output the component's status says
	// it.
	LogLoss *LogLoss `json:"logLoss,omitempty"`
	// Blocked is empty while nothing waits.
	Blocked []replica.Wait `json:"blocked"`
}

// LogLoss says what of the agent's log was lost since the agent began.
type LogLoss struct {
	Lines uint64 `json:"lines"`
	// Error is why the last line could not be written; empty while lines flow, and where they are only not taken.
	Error string `json:"error,omitempty"`
}

// Replica says who this is and how far its boot has come.
type Replica struct {
	replica.Identity
	// Phase is the step of the boot that runs, or keep; Since is when it began. Ready says that the boot is done.
	Phase string    `json:"phase"`
	Since time.Time `json:"since"`
	Ready bool      `json:"ready"`
	// StartsAgain is why the agent ends, where nobody asked it to: it is started again.
	StartsAgain string `json:"startsAgain,omitempty"`
	// Wanted is how many replicas are wanted: by order, else by the Cluster document; 0: it is not known yet.
	Wanted int `json:"wanted,omitempty"`
	// Incarnation is this replica's incarnation in the record.
	Incarnation uint64 `json:"incarnation,omitempty"`
	// DiskID is the Compute API's id of the data disk. DiskIDUnknown: there is such a disk, and the API has not yet
	// said its id.
	DiskID        string `json:"diskID,omitempty"`
	DiskIDUnknown bool   `json:"diskIDUnknown,omitempty"`
}

// Boot says how long a start of the agent took, in seconds.
type Boot struct {
	// Phases are those that are done, in order.
	Phases []PhaseTook `json:"phases"`
	// Ready is how long all of it took; 0: it is not done.
	Ready float64 `json:"readySeconds,omitempty"`
}

// PhaseTook is how long one phase took.
type PhaseTook struct {
	Phase   string  `json:"phase"`
	Seconds float64 `json:"seconds"`
}

// Lease is one leader election of the control plane.
type Lease struct {
	Name   string `json:"name"`
	Holder string `json:"holder"`
	// Renewed is by the holder's clock. Age is for how many seconds this agent has not seen it change.
	Renewed time.Time `json:"renewed"`
	Age     float64   `json:"age"`
	// Component is the component that elects itself with the lease; nothing: the agents themselves, or another program.
	Component string `json:"component,omitempty"`
	// Role is what this replica is in the election, Leader or Standby; nothing where it takes no part.
	Role string `json:"role,omitempty"`
	// Restarts is how often this agent has started the component again for its lease.
	Restarts int `json:"restarts,omitempty"`
}

// Leader and Standby are the roles in an election in which a replica stands.
const (
	Leader  = "leader"
	Standby = "standby"
)

// Snapshots says how old the newest verified snapshot is, and when there will be another.
type Snapshots struct {
	// Newest is the name of the newest snapshot of the open epoch, Time when it was taken; nothing where there is none.
	Newest string     `json:"newest,omitempty"`
	Time   *time.Time `json:"time,omitempty"`
	// NoneSince is when the open epoch was formed, where it has no snapshot yet.
	NoneSince *time.Time `json:"noneSince,omitempty"`
	// Due is when the next one is; Turn when it is this replica's turn, nothing where it has none.
	Due  time.Time  `json:"due"`
	Turn *time.Time `json:"turn,omitempty"`
	// Saving says that this replica saves one now. Failures counts those that this agent could not save.
	Saving   bool   `json:"saving"`
	Failures uint64 `json:"failures,omitempty"`
}

// Archives says what the archived directories of former members take on this replica's data disk.
type Archives struct {
	Count int `json:"count"`
	// Bytes is what their files have.
	Bytes int64 `json:"bytes"`
	// Kept is why no more is purged; empty: only what always stays is left.
	Kept string `json:"kept,omitempty"`
}
