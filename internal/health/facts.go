package health

import (
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// Facts is all that is known from outside, at one moment.
type Facts struct {
	Cluster string
	// Now is by the clock of whoever asks. Only what is dated in the future is compared with it: the ages of reports
	// are by the store's.
	Now time.Time
	// Wanted is how many replicas are wanted: by order, else by the Cluster document.
	Wanted int
	// Reports are those of all replicas, also of such as are long gone.
	Reports []report.Sighting
	// Unread is why the reports could not be read; UnreadRecord why the record could not. Empty: they were.
	Unread, UnreadRecord string
	// NoBucket reports that Unread is so because the bucket does not exist.
	NoBucket bool
	// Orders are those in force.
	Orders []Order
	// Left are the places that were ordered to leave, and whose members are gone.
	Left []replica.Place
	// Endpoint is how the cluster's endpoint answers; nil: nobody asked it.
	Endpoint *Endpoint
	// VMs are those that the Compute API lists; nil: it was not asked, or did not answer, and UnreadVMs says why.
	VMs       []replica.VM
	UnreadVMs string
}

// Endpoint is the answer of the cluster's endpoint to /readyz.
type Endpoint struct {
	Address string `json:"address"`
	// Code is the HTTP status; 0: no answer came, and Error says why.
	Code  int    `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
	// Took is how long the answer took, in seconds.
	Took float64 `json:"tookSeconds,omitempty"`
}

// Serves reports whether the endpoint says that an apiserver behind it is ready.
func (e Endpoint) Serves() bool { return e.Code == 200 }

// Order is an order in force.
type Order struct {
	Number uint64    `json:"number"`
	Kind   string    `json:"kind"`
	What   string    `json:"what"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
	// Until is when it ends by itself; nil: it does not.
	Until *time.Time `json:"until,omitempty"`
}

// Commands are what somebody pastes, as they work from where the question was asked.
type Commands struct {
	// Quorate is a command of quorate's for this cluster, as it is run from here.
	Quorate func(command string) string
	// StartVM starts a VM that is not running. ResetVM shoots one that hangs and starts it. RecreateVM makes one in a
	// place where there is none. On runs a command on a master, as root.
	StartVM, ResetVM, RecreateVM func(p replica.Place) string
	On                           func(p replica.Place, command string) string
}
