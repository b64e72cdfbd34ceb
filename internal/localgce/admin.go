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

	"github.com/quorate/quorate/internal/localgce/answer"
)

// socketName is the admin socket in the state folder.
const socketName = "localgce.sock"

// request is the body of an order on the admin socket.
type request struct {
	Verb string   `json:"verb"`
	Args []string `json:"args"`
}

// reply is the answer to it.
type reply struct {
	Said  string `json:"said,omitempty"`
	Error string `json:"error,omitempty"`
}

// Run serves the project's methods to Clients on a socket in the state folder until ctx ends or a client asks for the
// end, and then closes the project. It calls up when Clients are heard.
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

// admin answers Clients.
func (p *Project) admin(down context.CancelFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { answer.JSON(w, p.Status()) })
	mux.HandleFunc("POST /v1/down", func(http.ResponseWriter, *http.Request) { down() })
	mux.HandleFunc("POST /v1/do", func(w http.ResponseWriter, r *http.Request) {
		said, err := p.carryOut(r)
		if err != nil {
			w.WriteHeader(http.StatusConflict)
			answer.JSON(w, reply{Error: err.Error()})
			return
		}
		answer.JSON(w, reply{Said: said})
	})
	return mux
}

// carryOut does not stop half-way when the client goes: a VM is better whole.
func (p *Project) carryOut(r *http.Request) (string, error) {
	var asked request
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return "", fmt.Errorf("read order: %w", err)
	}
	v, o, err := parseOrder(asked.Verb, asked.Args)
	if err != nil {
		return "", err
	}
	return v.do(context.WithoutCancel(r.Context()), p, o)
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
