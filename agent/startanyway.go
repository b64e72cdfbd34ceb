package agent

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"

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

// startAnyway is that order. It is kept in a file, which holds the boot for which it was given: a restart of the agent
// does not forget it, a boot does.
type startAnyway struct {
	log   *slog.Logger
	path  string
	found *found
}

// may reports for which boot the order would be, or why it would change nothing.
func (s *startAnyway) may() (boot string, err error) {
	s.found.mu.Lock()
	m, boot := s.found.membership, s.found.self.BootID
	s.found.mu.Unlock()
	if m == nil || boot == "" {
		return "", errors.New("it does not know yet who it is")
	}
	return boot, m.MayStartAnyway()
}

func (s *startAnyway) give() error {
	boot, err := s.may()
	if err != nil {
		return err
	}
	s.log.Warn("a person said start-anyway: etcd starts although the record cannot be read", "boot", boot)
	return durable.WriteFile(s.path, []byte(boot), 0o600)
}

// given reports whether the order was given in this very boot.
func (s *startAnyway) given() bool {
	b, err := os.ReadFile(s.path)
	s.found.mu.Lock()
	defer s.found.mu.Unlock()
	return err == nil && s.found.self.BootID != "" && string(b) == s.found.self.BootID
}
