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
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// ErrDown is returned by a Client where no project is up.
var ErrDown = errors.New("no project is up")

// Client speaks to the process of a project that is up (Project.Run). Its methods are the Project's.
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
	return &Client{state: abs, http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}, nil
}

// Status looks at the project.
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

// StartVM is Project.StartVM.
func (c *Client) StartVM(ctx context.Context, name string) error {
	return c.order(ctx, "vm/start", order{VM: name})
}

// KillVM is Project.KillVM.
func (c *Client) KillVM(ctx context.Context, name string) error {
	return c.order(ctx, "vm/kill", order{VM: name})
}

// StopVM is Project.StopVM.
func (c *Client) StopVM(ctx context.Context, name string) error {
	return c.order(ctx, "vm/stop", order{VM: name})
}

// FreezeVM is Project.FreezeVM.
func (c *Client) FreezeVM(ctx context.Context, name string) error {
	return c.order(ctx, "vm/freeze", order{VM: name})
}

// ThawVM is Project.ThawVM.
func (c *Client) ThawVM(ctx context.Context, name string) error {
	return c.order(ctx, "vm/thaw", order{VM: name})
}

// CreateVM is Project.CreateVM.
func (c *Client) CreateVM(ctx context.Context, v VMConfig, disk string) error {
	return c.order(ctx, "vm/create", order{Create: v, Disk: diskOrder{Name: disk}})
}

// DeleteVM is Project.DeleteVM.
func (c *Client) DeleteVM(ctx context.Context, name string, withDisk bool) error {
	return c.order(ctx, "vm/delete", order{VM: name, Disk: diskOrder{Delete: withDisk}})
}

// RecreateVM is Project.RecreateVM.
func (c *Client) RecreateVM(ctx context.Context, name string, r Recreation) error {
	return c.order(ctx, "vm/recreate", order{VM: name, Recreate: r})
}

// HostError is Project.HostError.
func (c *Client) HostError(ctx context.Context, name string, h HostError) error {
	return c.order(ctx, "vm/host-error", order{VM: name, Host: h})
}

// SetLink is Project.SetLink.
func (c *Client) SetLink(ctx context.Context, name string, l Link) error {
	return c.order(ctx, "net/limit", order{VM: name, Link: l})
}

// ResetConnections is Project.ResetConnections.
func (c *Client) ResetConnections(ctx context.Context, a, b string) (int, error) {
	return c.count(ctx, "net/reset", order{VM: a, Other: b})
}

// SetBindFault is Project.SetBindFault.
func (c *Client) SetBindFault(ctx context.Context, name, guest, kind string) error {
	return c.order(ctx, "fault/bind", order{VM: name, Key: guest, Fault: kind})
}

// Cut is Project.Cut.
func (c *Client) Cut(ctx context.Context, name string) error {
	return c.order(ctx, "net/cut", order{VM: name})
}

// Heal is Project.Heal.
func (c *Client) Heal(ctx context.Context, name string) error {
	return c.order(ctx, "net/heal", order{VM: name})
}

// Partition is Project.Partition.
func (c *Client) Partition(ctx context.Context, a, b string, oneWay bool) error {
	return c.order(ctx, "net/partition", order{VM: a, Other: b, OneWay: oneWay})
}

// SetAttribute is Project.SetAttribute.
func (c *Client) SetAttribute(ctx context.Context, name, key string, value *string) error {
	return c.order(ctx, "attribute", order{VM: name, Key: key, Value: value})
}

// SetMaintenance is Project.SetMaintenance.
func (c *Client) SetMaintenance(ctx context.Context, name, event string) error {
	return c.order(ctx, "vm/maintenance", order{VM: name, Key: event})
}

// SetFault is Project.SetFault.
func (c *Client) SetFault(ctx context.Context, s Service, f Fault) error {
	return c.order(ctx, "fault/"+string(s), order{Service: f})
}

// SetNameServerFault is Project.SetNameServerFault.
func (c *Client) SetNameServerFault(ctx context.Context, name, kind string) error {
	return c.order(ctx, "fault/names", order{VM: name, Fault: kind})
}

// downTimeout is how long a project may take to close before it is swept by force.
const downTimeout = 60 * time.Second

// Down ends the project and removes every trace of it from the machine, also if its process hangs or is dead. It says whether one was up.
func (c *Client) Down(ctx context.Context) (wasUp bool, err error) {
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := c.order(asking, "down", order{}); err == nil {
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
		if l, err := takeLock(namesFor(c.state)); err == nil {
			l.release()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (c *Client) order(ctx context.Context, verb string, o order) error {
	_, err := c.ask(ctx, verb, o)
	return err
}

// count is an order that says how many it met.
func (c *Client) count(ctx context.Context, verb string, o order) (int, error) {
	said, err := c.ask(ctx, verb, o)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(said)
}

// ask is an order whose answer says something.
func (c *Client) ask(ctx context.Context, verb string, o order) (string, error) {
	body, err := c.call(ctx, http.MethodPost, verb, &o)
	if err != nil {
		return "", err
	}
	var r reply
	err = json.Unmarshal(body, &r)
	return r.Said, err
}

func (c *Client) call(ctx context.Context, method, verb string, o *order) ([]byte, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localgce/v1/"+verb, bytes.NewReader(body))
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
	var refusal struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(answer, &refusal) != nil || refusal.Error == "" {
		return nil, fmt.Errorf("%s: the project answered %s: %s", verb, resp.Status, answer)
	}
	return nil, errors.New(refusal.Error)
}

// explain tells a project that is not up from one that does not answer.
func (c *Client) explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("ask the project in %s: %w", c.state, ErrNotRoot)
	}
	if pid, ok := namesFor(c.state).owner(); ok {
		return fmt.Errorf("the project in %s (process %d) does not answer: %w", c.state, pid, err)
	}
	return fmt.Errorf("%w in %s", ErrDown, c.state)
}

// ParseAddress reads an address of a flag; empty is the zero value.
func ParseAddress(s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, fmt.Errorf("address %q: an IPv4 address such as 10.240.0.7 is needed", s)
	}
	return a, nil
}
