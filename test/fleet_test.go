package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/internal/localgce"
)

// fleetSection is what VMs are made of, as the document says it.
const fleetSection = `gce:
  project: quorate-local
  region: us-central1
  zones: [us-central1-a, us-central1-b, us-central1-c]
  image: family/quorate-master
  serviceAccount: 271828182845-compute@developer.gserviceaccount.com
  dataDisk: {sizeGB: 30}`

// TestTheFleetsCommands takes a cluster from an empty project to three masters and back, by the operator's commands
// alone, while clients write and read. A command that is killed, or whose calls fail, is run again and completes.
func TestTheFleetsCommands(t *testing.T) {
	t.Parallel()
	c := fleetOf(t, 3)
	out, err := c.quorate(t, "create", "--dry-run")
	if err != nil || !strings.Contains(out, "1. Begin the record") || len(c.Status().VMs) > 0 || c.hasRecord() {
		t.Fatalf("a dry run: %v, %d VMs: %s", err, len(c.Status().VMs), out)
	}
	c.must(t, os.WriteFile(c.personal(), []byte(mine), 0o600))
	c.killedAt(t, func() bool { return len(c.Status().VMs) == 2 }, "create")
	c.commanded(t, 0, "create")
	c.reaches(t)
	first := c.wantFleet(t, 3, 0)
	c.vms = namesOf(first)
	for _, step := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"create again does nothing", func(t *testing.T) {
			if out := c.commanded(t, 0, "create"); out != "Nothing is left to do.\n" {
				t.Error(out)
			}
		}},
		{"remove the leader and its disk; add, where an answer is lost and the tool killed", func(t *testing.T) {
			at := slices.IndexFunc(first, func(r fleet.ListedReplica) bool { return r.Leads })
			c.commanded(t, 0, "remove", first[at].Name, "--delete-disk")
			c.wantFleet(t, 2, 0)
			c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Kind: "lost", Call: "POST zones/*/instances",
				Times: 1}))
			c.killedAt(t, func() bool { return len(c.Status().VMs) == 3 }, "add")
			c.commanded(t, 0, "add")
			list := c.wantFleet(t, 3, 0)
			c.vms = namesOf(list)
			if zones := zonesOf(list); len(zones) != 3 {
				t.Errorf("in the zones %q", zones)
			}
		}},
		{"an API that fails ends the command, which completes when it is run again", func(t *testing.T) {
			c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Kind: "failed", Code: "QUOTA_EXCEEDED",
				Call: "POST disks", Times: 1}))
			c.commanded(t, 14, "replace", c.vms[0], "--delete-disk")
			before := c.vms[0]
			c.commanded(t, 0, "replace", before, "--delete-disk")
			c.vms = namesOf(c.wantFleet(t, 3, 0))
			if slices.Contains(c.vms, before) {
				t.Errorf("%s is still there", before)
			}
		}},
		{"a new disk in its place; the former one is kept", func(t *testing.T) {
			c.commanded(t, 0, "replace", c.vms[1], "--new-disk")
			c.wantFleet(t, 3, 1)
		}},
		{"roll is interrupted, and goes on", func(t *testing.T) {
			before := c.madeOf(t)
			c.interruptedAt(t, func() bool { return len(c.Status().VMs) == 2 }, "roll", "--image", "quorate-2")
			c.commanded(t, 0, "roll", "--image", "quorate-2")
			after := c.madeOf(t)
			if len(before) != 1 || len(after) != 1 || !strings.HasSuffix(after[0], "/quorate-2") {
				t.Errorf("images %q, then %q", before, after)
			}
			c.wantFleet(t, 3, 1)
		}},
		{"roll takes another machine type and another tag", func(t *testing.T) {
			text, err := os.ReadFile(c.configFile())
			c.must(t, err)
			changed := strings.Replace(string(text), "  image: family/quorate-master\n",
				"  image: quorate-2\n  machineType: e2-highmem-4\n  tags: [masters]\n", 1)
			c.must(t, os.WriteFile(c.configFile(), []byte(changed), 0o600))
			out := c.commanded(t, 0, "roll", "--dry-run")
			if !strings.Contains(out, ": gce.machineType is e2-standard-4; e2-highmem-4 is wanted.") ||
				!strings.Contains(out, ": gce.tags is not given; masters is wanted.") {
				t.Error(out)
			}
			c.commanded(t, 0, "roll")
			c.wantFleet(t, 3, 1)
			if out := c.commanded(t, 0, "roll"); out != "Nothing is left to do.\n" {
				t.Error(out)
			}
		}},
	} {
		ok := t.Run(step.name, func(t *testing.T) {
			l := c.startWriters(t)
			step.do(t)
			c.invariants(t, l)
		})
		if !ok {
			t.FailNow()
		}
	}
	c.commanded(t, 0, "delete")
	left, err := filepath.Glob(filepath.Join(c.conf.State, "disks", "*"))
	c.must(t, err)
	if vms := c.Status().VMs; len(vms) > 0 || len(left) > 0 {
		t.Errorf("left: %+v, disks %q", vms, left)
	}
	if out := c.commanded(t, 0, "delete"); out != "Nothing is left to do.\n" || !c.hasRecord() {
		t.Errorf("the record is there: %t; %s", c.hasRecord(), out)
	}
	c.commanded(t, 13, "create") // the record says that there was a cluster, and nobody leads it
}

// fleetOf is a project without VMs, and a document that wants so many masters.
func fleetOf(t *testing.T, replicas int) *cluster {
	t.Helper()
	return bare(t, fleetPlan(replicas))
}

// fleetPlan is the project of fleetOf.
func fleetPlan(replicas int) plan {
	return plan{replicas: replicas, noRecord: true, noAttribute: true, more: fleetSection,
		zones:  []string{"us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f"},
		images: []localgce.Image{{Name: "quorate-1", Family: "quorate-master"}, {Name: "quorate-2"}}}
}

func (c *cluster) hasRecord() bool {
	_, err := os.Stat(filepath.Join(c.record(), "inception.json"))
	return err == nil
}

// fleetCommand is a command that asks nobody.
func (c *cluster) fleetCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.programs, "quorate"), append(args, "--yes", "--config",
		c.configFile())...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.personal())
	return cmd
}

// personal is the file that kubectl would read here.
func (c *cluster) personal() string { return filepath.Join(c.state, "personal.kubeconfig") }

// reaches wants kubectl's file to have the cluster as a context, which is not the current one, and leads to it: it is
// asked as an administrator, through the endpoint.
func (c *cluster) reaches(t *testing.T) {
	t.Helper()
	conf, err := clientcmd.LoadFromFile(c.personal())
	c.must(t, err)
	if conf.CurrentContext != "mine" || conf.Contexts["mine"] == nil {
		t.Errorf("the current context is %q", conf.CurrentContext)
	}
	rest, err := clientcmd.NewNonInteractiveClientConfig(*conf, "test", nil, nil).ClientConfig()
	c.must(t, err)
	transport, err := restclient.TransportFor(rest)
	c.must(t, err)
	answer, err := (&http.Client{Transport: transport, Timeout: patience}).Get(rest.Host + "/readyz")
	c.must(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || len(rest.CertData) == 0 {
		t.Errorf("%s answers %s", rest.Host, answer.Status)
	}
}

// mine is the kubeconfig of an operator who has another cluster.
const mine = "{apiVersion: v1, kind: Config, current-context: mine, clusters: [{name: mine, cluster: {server: " +
	"'https://192.0.2.1'}}], contexts: [{name: mine, context: {cluster: mine, user: mine}}]}"

// commanded runs a command of the fleet, which has to end with a code, and returns what it prints.
func (c *cluster) commanded(t *testing.T, code int, args ...string) string {
	t.Helper()
	began := time.Now()
	out, err := run(c.fleetCommand(t.Context(), args...))
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	}
	if got != code {
		t.Fatalf("exit code %d, want %d: %v\n%s", got, code, err, out)
	}
	t.Logf("quorate %s: %s\n%s", strings.Join(args, " "), time.Since(began).Round(time.Second), out)
	return out
}

// killedAt shoots a command when something has come.
func (c *cluster) killedAt(t *testing.T, at func() bool, args ...string) {
	t.Helper()
	if err := c.signalled(t, syscall.SIGKILL, at, args...); err.Signal() != syscall.SIGKILL {
		t.Fatalf("quorate %s was not killed: %v", strings.Join(args, " "), err)
	}
}

// interruptedAt is Ctrl-C when something has come: the command ends in order, and says that it can be run again.
func (c *cluster) interruptedAt(t *testing.T, at func() bool, args ...string) {
	t.Helper()
	if status := c.signalled(t, syscall.SIGINT, at, args...); status.ExitStatus() != 14 {
		t.Fatalf("quorate %s: exit code %d", strings.Join(args, " "), status.ExitStatus())
	}
}

func (c *cluster) signalled(t *testing.T, signal syscall.Signal, at func() bool, args ...string) syscall.WaitStatus {
	t.Helper()
	cmd := c.fleetCommand(t.Context(), args...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	c.must(t, cmd.Start())
	for since := time.Now(); !at(); time.Sleep(5 * time.Millisecond) {
		if time.Since(since) > patience {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("what it was to be stopped at did not come:\n%s", said.String())
		}
	}
	c.must(t, cmd.Process.Signal(signal))
	_ = cmd.Wait() // the state says how it ended
	t.Logf("quorate %s, %s:\n%s", strings.Join(args, " "), cmd.ProcessState, said.String())
	return cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// anySpare: the number of data disks that no VM has does not matter.
const anySpare = -1

// wantFleet wants so many masters, each a voter, or of two one a learner, and ready; and so many data disks that no VM
// has.
func (c *cluster) wantFleet(t *testing.T, masters, spare int) []fleet.ListedReplica {
	t.Helper()
	var l fleet.Listing
	await(t, fmt.Sprintf("%d masters are listed", masters), func() error {
		out, err := c.quorate(t, "list", "-o", "json")
		if err != nil {
			return err
		}
		l = fleet.Listing{}
		if err := json.Unmarshal([]byte(out), &l); err != nil {
			return err
		}
		leaders, voters := 0, 0
		for _, r := range l.Replicas {
			if !r.Ready || r.VM != "RUNNING" {
				return fmt.Errorf("%+v", r)
			}
			if r.Role == fleet.Voter {
				voters++
			}
			if r.Leads {
				leaders++
			}
		}
		if len(l.Replicas) != masters || leaders != 1 || voters != masters-1+masters%2 ||
			spare != anySpare && len(l.SpareDisks) != spare {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
	return l.Replicas
}

func namesOf(list []fleet.ListedReplica) (out []string) {
	for _, r := range list {
		out = append(out, r.Name)
	}
	return out
}

func zonesOf(list []fleet.ListedReplica) (out []string) {
	for _, r := range list {
		out = append(out, r.Zone)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// madeOf are the images of the masters, each once.
func (c *cluster) madeOf(t *testing.T) (out []string) {
	t.Helper()
	for _, r := range c.wantFleet(t, len(c.vms), 1) {
		out = append(out, r.Image)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
