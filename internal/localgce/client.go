package localgce

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/internal/localgce/names"
)

// ErrDown is returned by a Client where no project is up.
var ErrDown = errors.New("no project is up")

// Client speaks to the process of a project that is up (Project.Run).
type Client struct {
	state string
	http  *http.Client
}

// NewClient speaks to the project of a state folder. It does not ask it anything yet.
func NewClient(state string) (*Client, error) {
	abs, err := filepath.Abs(state)
	if err != nil {
		return nil, fmt.Errorf("state folder %s: %w", state, err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		folder, err := os.Open(abs)
		if err != nil {
			return nil, err
		}
		defer folder.Close()
		return (&net.Dialer{}).DialContext(ctx, "unix", socketIn(folder))
	}
	return &Client{state: abs, http: &http.Client{Transport: &http.Transport{DialContext: dial,
		DisableKeepAlives: true}}}, nil
}

// Status describes the project.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	body, err := c.call(ctx, http.MethodGet, "status", nil)
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	return s, err
}

// VM is one VM of the project's Status.
func (c *Client) VM(ctx context.Context, name string) (VMStatus, error) {
	s, err := c.Status(ctx)
	if err != nil {
		return VMStatus{}, err
	}
	var known []string
	for _, v := range s.VMs {
		if v.Name == name {
			return v, nil
		}
		known = append(known, v.Name)
	}
	return VMStatus{}, &NotFoundError{Name: name, Known: known}
}

// Do carries out a verb with its fields, each KEY=VALUE (see Verbs), and returns what there is to say of it. An
// *OrderError is a mistake in these; no project is asked then.
func (c *Client) Do(ctx context.Context, verb string, args ...string) (said string, err error) {
	if _, _, err := parseOrder(verb, args); err != nil {
		return "", err
	}
	body, err := c.call(ctx, http.MethodPost, "do", request{verb, args})
	if err != nil {
		return "", err
	}
	var r reply
	err = json.Unmarshal(body, &r)
	return r.Said, err
}

// downTimeout is how long a project may take to close before it is swept by force.
const downTimeout = 60 * time.Second

// Down ends the project and removes every trace of it from the machine, also if its process hangs or is dead. It says
// whether one was up.
func (c *Client) Down(ctx context.Context) (wasUp bool, err error) {
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := c.call(asking, http.MethodPost, "down", nil); err == nil {
		wasUp = true
		c.awaitEnd(ctx)
	}
	return wasUp, Sweep(ctx, c.state)
}

// awaitEnd waits until the project's process has let the lock go, within downTimeout.
func (c *Client) awaitEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	for ctx.Err() == nil {
		if l, err := names.For(c.state).Take(); err == nil {
			l.Release()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (c *Client) call(ctx context.Context, method, path string, body any) ([]byte, error) {
	sent, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localgce/v1/"+path, bytes.NewReader(sent))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explain(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusOK {
		return answer, err
	}
	var refusal reply
	if json.Unmarshal(answer, &refusal) != nil || refusal.Error == "" {
		return nil, fmt.Errorf("%s: the project answered %s: %s", path, resp.Status, answer)
	}
	return nil, errors.New(refusal.Error)
}

// explain tells a project that is not up from one that does not answer.
func (c *Client) explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("ask the project in %s: %w", c.state, ErrNotRoot)
	}
	if pid, ok := names.For(c.state).Owner(); ok {
		return fmt.Errorf("the project in %s (process %d) does not answer: %w", c.state, pid, err)
	}
	return fmt.Errorf("%w in %s", ErrDown, c.state)
}
