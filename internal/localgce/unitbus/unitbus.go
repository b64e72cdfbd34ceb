// Package unitbus observes a unit of a systemd in other namespaces, over the D-Bus there.
//
// It speaks to the system bus and not to systemd's private socket: that one refuses a peer whose process its namespace
// does not know. godbus is used by itself, because go-systemd knows only the bus of the machine that it runs on.
package unitbus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	systemd    = "org.freedesktop.systemd1"
	manager    = dbus.ObjectPath("/org/freedesktop/systemd1")
	properties = "org.freedesktop.DBus.Properties"
)

// State is what systemd says of a service. The names are its properties'.
type State struct {
	ActiveState, SubState, Result, StatusText string
	// StateChange is when ActiveState or SubState changed last.
	StateChange time.Time
	// MainPID is the main process's in the namespace of that systemd; 0: none.
	MainPID, NRestarts int
	// ExecMainCode is how the main process ended (waitid's CLD_EXITED, CLD_KILLED, CLD_DUMPED), 0 while it runs, and
	// ExecMainStatus its exit code or the signal.
	ExecMainCode, ExecMainStatus int
	// Job says that a start or a stop of the unit waits or runs.
	Job bool
}

// Watch reports the state of a service, given as its object's path, now and whenever systemd says that it has changed.
// It returns when the bus has gone or ctx has ended; the former is an error.
func Watch(ctx context.Context, socket string, service dbus.ObjectPath, report func(State)) error {
	conn, err := dial(ctx, socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	// A signal says that something has changed; the state is read whole after it.
	changes := make(chan *dbus.Signal, 64)
	conn.Signal(changes)
	if err := conn.AddMatchSignalContext(ctx, dbus.WithMatchObjectPath(service), dbus.WithMatchInterface(properties),
		dbus.WithMatchMember("PropertiesChanged")); err != nil {
		return fmt.Errorf("watch %s: %w", service, err)
	}
	if err := call(ctx, conn, manager, systemd+".Manager.Subscribe").Err; err != nil {
		return fmt.Errorf("watch %s: %w", service, err)
	}
	for {
		s, err := read(ctx, conn, service)
		if err != nil {
			return err
		}
		report(s)
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-changes:
			if !ok {
				return errors.New("the bus is gone")
			}
		}
	}
}

// SetServiceWatchdogs switches the watchdogs of all services on or off, as `systemctl service-watchdogs` does.
func SetServiceWatchdogs(ctx context.Context, socket string, on bool) error {
	conn, err := dial(ctx, socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = call(ctx, conn, manager, properties+".Set", systemd+".Manager", "ServiceWatchdogs", dbus.MakeVariant(on)).Err
	if err != nil {
		return fmt.Errorf("switch the watchdogs of services: %w", err)
	}
	return nil
}

// dial connects to a bus as root. The connection ends with ctx.
func dial(ctx context.Context, socket string) (*dbus.Conn, error) {
	conn, err := dbus.Connect("unix:path="+socket, dbus.WithContext(ctx), dbus.WithAuth(dbus.AuthExternal("0")))
	if err != nil {
		return nil, fmt.Errorf("connect to the bus: %w", err)
	}
	return conn, nil
}

func call(ctx context.Context, conn *dbus.Conn, object dbus.ObjectPath, method string, args ...any) *dbus.Call {
	return conn.Object(systemd, object).CallWithContext(ctx, method, 0, args...)
}

// read asks for all properties at once, so that they are of one moment.
func read(ctx context.Context, conn *dbus.Conn, service dbus.ObjectPath) (s State, err error) {
	var all map[string]dbus.Variant
	if err := call(ctx, conn, service, properties+".GetAll", "").Store(&all); err != nil {
		return s, fmt.Errorf("read %s: %w", service, err)
	}
	var mainPID, restarts uint32
	var code, status int32
	var changed uint64
	var job struct {
		ID   uint32
		Path dbus.ObjectPath
	}
	for name, to := range map[string]any{
		"ActiveState": &s.ActiveState, "SubState": &s.SubState, "Result": &s.Result, "StatusText": &s.StatusText,
		"MainPID": &mainPID, "NRestarts": &restarts, "ExecMainCode": &code, "ExecMainStatus": &status,
		"StateChangeTimestamp": &changed, "Job": &job,
	} {
		if err := all[name].Store(to); err != nil {
			return s, fmt.Errorf("read %s of %s: %w", name, service, err)
		}
	}
	s.MainPID, s.NRestarts, s.ExecMainCode, s.ExecMainStatus = int(mainPID), int(restarts), int(code), int(status)
	s.StateChange, s.Job = time.UnixMicro(int64(changed)).UTC(), job.ID != 0
	return s, nil
}
