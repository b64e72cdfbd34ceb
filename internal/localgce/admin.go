package localgce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// socketName is the admin socket in the state folder.
const socketName = "localgce.sock"

// order is the body of every request on the admin socket; each verb reads the fields that it needs.
type order struct {
	VM       string     `json:"vm,omitempty"`
	Other    string     `json:"other,omitempty"`
	OneWay   bool       `json:"oneWay,omitempty"`
	Recreate Recreation `json:"recreate,omitzero"`
	Key      string     `json:"key,omitempty"`
	Value    *string    `json:"value,omitempty"`
	Fault    string     `json:"fault,omitempty"`
	Service  Fault      `json:"service,omitzero"`
	Link     Link       `json:"link,omitzero"`
	Create   VMConfig   `json:"create,omitzero"`
	Host     HostError  `json:"host,omitzero"`
	Disk     diskOrder  `json:"disk,omitzero"`
}

// Run serves the project's methods to Clients on a socket in the state folder until ctx ends or a client asks for the end, and then
// closes the project. It calls up when Clients are heard.
func (p *Project) Run(ctx context.Context, up func()) error {
	ctx, down := context.WithCancel(ctx)
	defer down()
	listener, err := listenIn(p.conf.State)
	if err != nil {
		return errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	server := &http.Server{Handler: p.admin(down), ReadHeaderTimeout: 10 * time.Second}
	p.tasks.Go(func() { _ = server.Serve(listener) }) // ends with Close
	up()
	p.conf.Log.Info("project is up", "state", p.conf.State, "subnet", p.conf.Subnet)
	<-ctx.Done()
	p.conf.Log.Info("project goes down")
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = server.Shutdown(stopping) // lets the answer to the one who asked go out
	_ = server.Close()
	_ = os.Remove(filepath.Join(p.conf.State, socketName))
	return p.Close(context.WithoutCancel(ctx))
}

// admin routes the orders of Clients to the project's methods.
func (p *Project) admin(down context.CancelFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { answer(w, p.Status()) })
	p.routeDisks(mux)
	route(mux, "net/reset", func(ctx context.Context, o order) (string, error) {
		n, err := p.ResetConnections(ctx, o.VM, o.Other)
		return fmt.Sprint(n), err
	})
	for verb, do := range map[string]func(context.Context, order) error{
		"vm/create":      func(ctx context.Context, o order) error { return p.CreateVM(ctx, o.Create, o.Disk.Name) },
		"vm/delete":      func(ctx context.Context, o order) error { return p.DeleteVM(ctx, o.VM, o.Disk.Delete) },
		"vm/start":       func(ctx context.Context, o order) error { return p.StartVM(ctx, o.VM) },
		"vm/kill":        func(ctx context.Context, o order) error { return p.KillVM(ctx, o.VM) },
		"vm/stop":        func(ctx context.Context, o order) error { return p.StopVM(ctx, o.VM) },
		"vm/freeze":      func(ctx context.Context, o order) error { return p.FreezeVM(ctx, o.VM) },
		"vm/thaw":        func(ctx context.Context, o order) error { return p.ThawVM(ctx, o.VM) },
		"net/limit":      func(ctx context.Context, o order) error { return p.SetLink(ctx, o.VM, o.Link) },
		"fault/bind":     func(_ context.Context, o order) error { return p.SetBindFault(o.VM, o.Key, o.Fault) },
		"vm/recreate":    func(ctx context.Context, o order) error { return p.RecreateVM(ctx, o.VM, o.Recreate) },
		"vm/host-error":  func(ctx context.Context, o order) error { return p.HostError(ctx, o.VM, o.Host) },
		"net/cut":        func(ctx context.Context, o order) error { return p.Cut(ctx, o.VM) },
		"net/heal":       func(ctx context.Context, o order) error { return p.Heal(ctx, o.VM) },
		"net/partition":  func(ctx context.Context, o order) error { return p.Partition(ctx, o.VM, o.Other, o.OneWay) },
		"attribute":      func(_ context.Context, o order) error { return p.SetAttribute(o.VM, o.Key, o.Value) },
		"vm/maintenance": func(_ context.Context, o order) error { return p.SetMaintenance(o.VM, o.Key) },
		"fault/metadata": func(_ context.Context, o order) error { return p.SetFault(Metadata, o.Service) },
		"fault/names":    func(ctx context.Context, o order) error { return p.SetNameServerFault(ctx, o.VM, o.Fault) },
		"fault/compute":  func(_ context.Context, o order) error { return p.SetFault(Compute, o.Service) },
		"down":           func(context.Context, order) error { down(); return nil },
	} {
		route(mux, verb, func(ctx context.Context, o order) (string, error) { return "", do(ctx, o) })
	}
	return mux
}

// carryOut does not stop half-way when the client goes: a VM is better whole.
func carryOut(w http.ResponseWriter, r *http.Request, do func(context.Context, order) (string, error)) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, "read order: "+err.Error(), http.StatusBadRequest)
		return
	}
	said, err := do(context.WithoutCancel(r.Context()), o)
	if err != nil {
		w.WriteHeader(http.StatusConflict)
		answer(w, map[string]string{"error": err.Error()})
		return
	}
	answer(w, reply{Said: said})
}

// reply is the answer to an order that was carried out: with the little that some say.
type reply struct {
	Said string `json:"said,omitempty"`
}

// route serves a verb.
func route(mux *http.ServeMux, verb string, do func(context.Context, order) (string, error)) {
	mux.HandleFunc("POST /v1/"+verb, func(w http.ResponseWriter, r *http.Request) { carryOut(w, r, do) })
}

// listenIn opens the admin socket. Its path is reached through a descriptor of the folder, because a socket's path
// must not be longer than 107 bytes.
func listenIn(state string) (net.Listener, error) {
	if err := os.Remove(filepath.Join(state, socketName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove an old admin socket: %w", err)
	}
	folder, err := os.Open(state)
	if err != nil {
		return nil, fmt.Errorf("open the admin socket: %w", err)
	}
	defer folder.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketIn(folder), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open the admin socket in %s: %w", state, err)
	}
	l.SetUnlinkOnClose(false) // the descriptor in its name is closed by then
	return l, os.Chmod(filepath.Join(state, socketName), 0o600)
}

func socketIn(folder *os.File) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName)
}
