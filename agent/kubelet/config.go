package kubelet

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/waits"
	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// Units are systemd's. Its methods may be called concurrently, and return soon after ctx ends.
type Units interface {
	// Unit reads a unit. One that does not exist is no error.
	Unit(ctx context.Context, name string) (kubeletwatch.Unit, error)
	// Do has systemd begin with an act; how it went, the unit says later.
	Do(ctx context.Context, act kubeletwatch.Act, name string) error
	// WriteStacks makes the main process write its stacks to its log, and end.
	WriteStacks(ctx context.Context, name string) error
	// Changed receives after a unit has changed.
	Changed() <-chan struct{}
}

// Runtime is the container runtime. Ask returns why it has no network for pods, whether its socket took a connection,
// and an error where no answer came before ctx ended.
type Runtime interface {
	Ask(ctx context.Context) (network string, connected bool, err error)
}

// Port is the kubelet's health port. Ask is as the runtime's. Listening says that somebody listens on a port of the
// kubelet, whether or not it can be reached.
type Port interface {
	Ask(ctx context.Context) (connected bool, err error)
	Listening() bool
}

// Config is what the watch needs.
type Config struct {
	Log *slog.Logger
	// KubeletUnit and RuntimeUnit are names of units.
	KubeletUnit, RuntimeUnit string
	Limits                   kubeletwatch.Limits
	Units                    Units
	Runtime                  Runtime
	Port                     Port
	// Clock is the time since the VM's boot, by the clock of the units' timestamps.
	Clock func() time.Duration
	// APIServer says that this master's kube-apiserver is ready.
	APIServer func() bool
	// StatePath is the file of what the next agent of this boot has to know.
	StatePath string
	// KubeletWaits and RuntimeWaits take what the units wait for.
	KubeletWaits, RuntimeWaits *waits.Source
	// Tell is given each record once its outcome is known. It must not block.
	Tell func(Record)
}

const (
	// period is the time between two observations while nothing changes. Changes of a unit wake the watch at once.
	period = 5 * time.Second
	// hurry is the time between two observations while an outcome is awaited.
	hurry = 500 * time.Millisecond
	// readLimit bounds what is asked of systemd in one observation: it answers within milliseconds, or hangs.
	readLimit = 5 * time.Second
	// stacksLimit is how long a process may take to write its stacks. A busy one has some thousands of them.
	stacksLimit = 5 * time.Second
	// outcomeMargin is how long after the limit of a start-up an outcome is awaited.
	outcomeMargin = 30 * time.Second
)
