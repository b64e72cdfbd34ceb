package agent

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/internal/durable"
)

// SayStartAnyway asks the agent on this machine to start etcd although the record cannot be read, which is row 2.
// ErrRefused: it would change nothing.
func SayStartAnyway(ctx context.Context, socket string) error {
	return ask(ctx, socket, http.MethodPost, "/start-anyway", nil)
}

// MayStartAnyway asks whether that would change anything. ErrRefused says why not.
func MayStartAnyway(ctx context.Context, socket string) error {
	return ask(ctx, socket, http.MethodGet, "/start-anyway", nil)
}

// startAnywayPath holds the boot for which a person gave the order: a restart of the agent does not forget it, a boot
// does.
func (a *Agent) startAnywayPath() string { return filepath.Join(a.cfg.RunDir, "start-anyway") }

func (a *Agent) mayStartAnyway() (boot string, err error) {
	a.mu.Lock()
	m, boot := a.membership, a.self.BootID
	a.mu.Unlock()
	if m == nil || boot == "" {
		return "", errors.New("it does not know yet who it is")
	}
	return boot, m.MayStartAnyway()
}

func (a *Agent) startAnyway() error {
	boot, err := a.mayStartAnyway()
	if err != nil {
		return err
	}
	a.cfg.Log.Warn("a person said start-anyway: etcd starts although the record cannot be read", "boot", boot)
	return durable.WriteFile(a.startAnywayPath(), []byte(boot), 0o600)
}

// saidStartAnyway reports whether the order was given in this very boot.
func (a *Agent) saidStartAnyway() bool {
	b, err := os.ReadFile(a.startAnywayPath())
	a.mu.Lock()
	defer a.mu.Unlock()
	return err == nil && a.self.BootID != "" && string(b) == a.self.BootID
}
