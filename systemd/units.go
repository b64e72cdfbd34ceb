package systemd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// dialLimit bounds one try to connect to the bus: a bus that hangs must not hold up who asks.
const dialLimit = 3 * time.Second

// changesHeld is how many changes of units may wait to be sorted. Starting many containers makes many at once.
const changesHeld = 256

// Units are some units of the systemd that runs this machine: they are read, and acted on, over D-Bus. A connection
// that breaks is made anew at the next call. Its methods may be called concurrently.
type Units struct {
	names []string
	// changed holds one note that something has changed since it was last taken.
	changed chan struct{}

	mu   sync.Mutex
	conn *dbus.Conn
}

// NewUnits makes a reader of the units of these names. It connects at the first call.
func NewUnits(names ...string) *Units {
	return &Units{names: names, changed: make(chan struct{}, 1)}
}

// Changed receives after one of the units has changed, once for all changes since it was last received from.
func (u *Units) Changed() <-chan struct{} { return u.changed }

// Unit reads a unit. A unit that does not exist is no error: its Load says so.
func (u *Units) Unit(ctx context.Context, name string) (kubeletwatch.Unit, error) {
	conn, err := u.connect()
	if err != nil {
		return kubeletwatch.Unit{}, err
	}
	all, err := conn.GetAllPropertiesContext(ctx, name)
	if err != nil {
		u.drop(conn)
		return kubeletwatch.Unit{}, fmt.Errorf("read %s from systemd: %w", name, err)
	}
	found := unitOf(all)
	found.Ticks = startTicks(fmt.Sprintf("/proc/%d", found.PID))
	found.Unkilled = unkilled(cgroupOf(name, all))
	return found, nil
}

// Do carries out an act on a unit. It returns once systemd has taken it on: how it went, the unit says later.
func (u *Units) Do(ctx context.Context, act kubeletwatch.Act, name string) error {
	conn, err := u.connect()
	if err != nil {
		return err
	}
	if act != kubeletwatch.Park {
		// A unit at its start limit refuses to be started. That there is nothing to reset is no matter.
		_ = conn.ResetFailedUnitContext(ctx, name)
	}
	switch act {
	case kubeletwatch.Restart:
		_, err = conn.RestartUnitContext(ctx, name, "replace", nil)
	case kubeletwatch.Start:
		_, err = conn.StartUnitContext(ctx, name, "replace", nil)
	case kubeletwatch.Park:
		_, err = conn.StopUnitContext(ctx, name, "replace", nil)
	}
	if err != nil {
		return fmt.Errorf("%s %s by systemd: %w", act, name, err)
	}
	return nil
}

// WriteStacks makes a unit's main process, a Go program, write its goroutines' stacks to its log. The process ends by
// that. SIGCONT lets one that was stopped do it too.
func (u *Units) WriteStacks(ctx context.Context, name string) error {
	conn, err := u.connect()
	if err != nil {
		return err
	}
	for _, signal := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGCONT} {
		if err := conn.KillUnitWithTarget(ctx, name, dbus.Main, int32(signal)); err != nil {
			return fmt.Errorf("signal %s by systemd: %w", name, err)
		}
	}
	return nil
}

// connect is the connection: the system bus's, or where there is no bus, systemd's own.
func (u *Units) connect() (*dbus.Conn, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.conn != nil && u.conn.Connected() {
		return u.conn, nil
	}
	if u.conn != nil {
		u.conn.Close()
		u.conn = nil
	}
	// The context is the connection's life: it is cancelled only where the dialing takes too long.
	ctx, cancel := context.WithCancel(context.Background())
	limit := time.AfterFunc(dialLimit, cancel)
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("connect to systemd: %w", err)
	}
	err = conn.Subscribe()
	if !limit.Stop() {
		err = fmt.Errorf("it took longer than %s", dialLimit)
	}
	if err != nil {
		conn.Close()
		cancel()
		return nil, fmt.Errorf("subscribe to systemd's signals: %w", err)
	}
	u.follow(conn)
	u.conn = conn
	u.note() // what changed before nobody has heard
	return conn, nil
}

// follow notes the changes of the units, until the connection is closed.
func (u *Units) follow(conn *dbus.Conn) {
	updates, faults := make(chan *dbus.PropertiesUpdate, changesHeld), make(chan error, changesHeld)
	conn.SetPropertiesSubscriber(updates, faults)
	go func() {
		alive := time.NewTicker(time.Minute)
		defer alive.Stop()
		for conn.Connected() {
			select {
			case change := <-updates:
				if slices.Contains(u.names, change.UnitName) {
					u.note()
				}
			case <-faults: // some were dropped
				u.note()
			case <-alive.C:
			}
		}
		u.note()
	}()
}

func (u *Units) note() {
	select {
	case u.changed <- struct{}{}:
	default: // one waits to be taken
	}
}

// drop closes a connection that failed, so that the next call makes another.
func (u *Units) drop(conn *dbus.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	conn.Close()
	if u.conn == conn {
		u.conn = nil
	}
}

// Close ends the connection.
func (u *Units) Close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.conn != nil {
		u.conn.Close()
		u.conn = nil
	}
}
