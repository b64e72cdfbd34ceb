package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/internal/localgce"
)

// vm is one VM as the project shows it.
func (c *cluster) vm(name string) localgce.VMStatus {
	for _, v := range c.Status().VMs {
		if v.Name == name {
			return v
		}
	}
	return localgce.VMStatus{}
}

// status asks a replica's agent, on its own socket.
func (c *cluster) status(name string) (status.Status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return agent.ReadStatus(ctx, fmt.Sprintf("/proc/%d/root%s", c.vm(name).InitPID, agent.SocketPath("/run/quorate")))
}

// component is what the agent says of one component's state.
func component(s status.Status, name string) string {
	for _, c := range s.Components {
		if c.Name == name {
			return string(c.State)
		}
	}
	return "absent"
}

// voters are the started voters in a status.
func voters(s status.Status) (names []string) {
	for _, m := range s.Etcd.Members {
		if m.Started && m.Role == "voter" {
			names = append(names, m.Name)
		}
	}
	return names
}

// seesWhole says what the cluster lacks from one replica's sight: so many members, all of them started voters, every
// component ready, nothing that waits.
func (c *cluster) seesWhole(name string, members int) error {
	s, err := c.status(name)
	switch {
	case err != nil:
		return err
	case !s.Replica.Ready:
		return fmt.Errorf("%s is in phase %s; blocked: %+v", name, s.Replica.Phase, s.Blocked)
	case len(voters(s)) != members || len(s.Etcd.Members) != members:
		return fmt.Errorf("%s sees %d started voters among %d members, want %d: %+v", name, len(voters(s)),
			len(s.Etcd.Members), members, s.Etcd.Members)
	case len(s.Blocked) > 0:
		return fmt.Errorf("%s is blocked: %+v", name, s.Blocked)
	}
	for _, kind := range kubernetes {
		if state := component(s, kind); state != "ready" {
			return fmt.Errorf("%s on %s is %s", kind, name, state)
		}
	}
	return nil
}

// whole says what the cluster lacks: it is whole when every replica sees all as voters, every apiserver is ready, and
// the endpoint is balanced over all of them.
func (c *cluster) whole() error {
	for _, name := range c.vms {
		if err := c.seesWhole(name, len(c.vms)); err != nil {
			return err
		}
	}
	if s := c.Status(); len(s.Backends) != len(c.vms) || s.FailOpen {
		return fmt.Errorf("the endpoint is balanced over %q", s.Backends)
	}
	return nil
}

// awaitWhole waits for a whole cluster, and for its administrator's kubeconfig.
func (c *cluster) awaitWhole(t *testing.T) {
	t.Helper()
	await(t, "whole", c.whole)
	if _, err := os.Stat(c.kubeconfig()); errors.Is(err, os.ErrNotExist) {
		_, err := c.quorate(t, "kubeconfig", "--output", c.kubeconfig(), "--force")
		c.must(t, err)
	}
}

// leader is the VM whose member leads etcd, as the replica that is asked knows it.
func (c *cluster) leader(t *testing.T) (name string) {
	t.Helper()
	await(t, "a leader", func() error {
		for _, vm := range c.vms {
			s, err := c.status(vm)
			if err != nil {
				continue
			}
			for _, m := range s.Etcd.Members {
				if m.Leader && m.Name != "" {
					name = placeName(m.Name)
					return nil
				}
			}
		}
		return errors.New("nobody knows of one")
	})
	return name
}

// placeName is the VM's name in a member's, zone.name.instance; empty for a member that has none yet.
func placeName(member string) string {
	_, rest, _ := strings.Cut(member, ".")
	name, _, _ := strings.Cut(rest, ".")
	return name
}

// member is the member id that a replica has.
func (c *cluster) member(t *testing.T, name string) string {
	t.Helper()
	s, err := c.status(name)
	c.must(t, err)
	return s.Etcd.Member
}

// logOf is all that a VM's init and agent have printed.
func (c *cluster) logOf(name string) string {
	b, err := os.ReadFile(c.vm(name).Log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// tell prints, where a test has failed, what a person needs to find the cause.
func (c *cluster) tell(t *testing.T) {
	t.Helper()
	if !t.Failed() || c.Project == nil {
		return
	}
	c.told = true
	for _, name := range c.vms {
		v := c.vm(name)
		t.Logf("--- %s: %s, agent %+v", name, v.Status, v.Agent)
		if s, err := c.status(name); err == nil {
			text, _ := json.MarshalIndent(map[string]any{"components": s.Components, "etcd": s.Etcd,
				"blocked": s.Blocked}, "", " ")
			t.Logf("%s", text)
		} else {
			t.Logf("no status: %v", err)
		}
		lines := strings.Split(strings.TrimSpace(c.logOf(name)), "\n")
		t.Logf("the last of its log:\n%s", strings.Join(lines[max(0, len(lines)-50):], "\n"))
		t.Logf("what etcd warned of last:\n%s", strings.Join(warnings(filepath.Join(v.LogFolder, "etcd.log"), 40), "\n"))
		names, _ := os.ReadFile(c.guest(name, "/etc/hosts")) // a VM that is off has none
		t.Logf("its /etc/hosts:\n%s", names)
	}
}

// warnings are the newest lines of etcd's log that say more than what it does, each cut to what fits a screen or two.
func warnings(file string, most int) (found []string) {
	b, _ := os.ReadFile(file) // there may be none yet
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, `{"level":"info"`) && !strings.HasPrefix(line, `{"level":"debug"`) {
			line = strings.TrimSuffix(line, "\n")
			found = append(found, line[:min(len(line), 400)])
		}
	}
	return found[max(0, len(found)-most):]
}
