package test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// TestMastersOfTheImage takes three masters that boot the baked image, with its systemd, containerd and kubelet, to
// pods that run, and repairs one of them by its image alone. The cases build on each other.
func TestMastersOfTheImage(t *testing.T) {
	c := begin(t, plan{vms: []string{"master-a", "master-b", "master-c"}, image: true, asBaked: true,
		namesAndTime: true})
	for _, scenario := range []struct {
		name string
		do   func(*testing.T, *cluster)
	}{
		{"each master is a Ready Node with the taint of a control plane", nodesReady},
		{"each process has its own user and cgroup, and etcd is the last that the kernel kills", processesApart},
		{"a Deployment that tolerates the taint runs on each of them", podsRun},
		{"its pods' logs are read and commands run in them through the apiserver", logsAndExec},
		{"a pod is reached over its Node's bridge", bridged},
		{"chrony takes the time from the metadata server", timeOfTheHost},
		{"nothing but state is written to the boot disk", onlyStateIsWritten},
		{"a master is recreated from the image with an empty disk", recreatedFromImage},
		{"an agent that dies takes neither pods nor a person's command with it", agentDies},
	} {
		ok := t.Run(scenario.name, func(t *testing.T) {
			t.Cleanup(func() { c.tell(t); c.tellUnits(t) })
			scenario.do(t, c)
		})
		if !ok {
			t.Fatal("the cases after this one need what it shows")
		}
	}
}

// processesApart looks at what the unit, the image's users and the supervisor together have made of each process: its
// user, a cgroup of its own below the unit's, and its place when memory is short.
func processesApart(t *testing.T, c *cluster) {
	const unit = "/system.slice/quorate.service/"
	for _, vm := range c.vms {
		await(t, "one of each", func() error { return c.one(vm) })
		c.wantEtcdFirst(t, vm)
		groups := map[string]string{}
		for kind, ids := range c.processes(vm) {
			user := kind
			if kind == "agent" {
				user = "root"
			}
			out := c.in(t, vm, fmt.Sprintf("stat -c %%U /proc/%s; grep '^0::' /proc/%[1]s/cgroup", ids[0]))
			got, group, _ := strings.Cut(strings.TrimSpace(out), "\n0::")
			if got != user {
				t.Errorf("%s on %s runs as %q, want %q", kind, vm, got, user)
			}
			if other, taken := groups[group]; taken || !strings.Contains(group, unit) {
				t.Errorf("%s on %s is in the cgroup %q, want one of its own below %s (%s is in it)", kind, vm, group, unit,
					other)
			}
			groups[group] = kind
			if slack := c.in(t, vm, "cat /proc/"+ids[0]+"/timerslack_ns"); slack != "500000\n" {
				t.Errorf("%s on %s has a timer slack of %q ns, want the unit's", kind, vm, slack)
			}
		}
		// A machine that gives no CAP_SYS_RESOURCE lets no process have it: so what systemd has been told.
		if score := c.in(t, vm, "systemctl show -P OOMScoreAdjust quorate"); score != "-998\n" {
			t.Errorf("the unit's OOMScoreAdjust on %s is %q", vm, score)
		}
	}
}

// timeOfTheHost asks as the image's unit does, but sets no clock: that is the machine's own. Without an answer chronyd
// ends after its time with an error.
func timeOfTheHost(t *testing.T, c *cluster) {
	out := c.in(t, c.vms[0], "chronyd -Q -t 20 -f /etc/chrony/chrony.conf 2>&1")
	var wrong float64
	for line := range strings.Lines(out) {
		if _, says, ok := strings.Cut(line, "System clock wrong by "); ok {
			_, err := fmt.Sscan(says, &wrong)
			if err == nil && math.Abs(wrong) < 1 {
				return
			}
		}
	}
	t.Errorf("no time, or a wrong one:\n%s", out)
}

// onlyStateIsWritten looks for what a master has written to its boot disk since its first boot began: an image may have
// all else read-only.
func onlyStateIsWritten(t *testing.T, c *cluster) {
	out := c.in(t, c.vms[0], `find / -xdev -cnewer /etc/machine-id -not -type d`)
	state := regexp.MustCompile(`^/(var/|etc/(hosts$|cni/net\.d/|\.pwd\.lock$))`)
	for _, path := range strings.Fields(out) {
		if !state.MatchString(path) {
			t.Errorf("%s was written", path)
		}
	}
	if !strings.Contains(out, "/etc/hosts\n") {
		t.Errorf("/etc/hosts is not among what was written: %q", out)
	}
}

// node is what of a Node is of interest here.
type node struct {
	Metadata struct{ Name string }
	Spec     struct {
		PodCIDR string
		Taints  []struct{ Key, Effect string }
	}
	Status struct {
		NodeInfo   struct{ BootID string }
		Conditions []struct{ Type, Status, Message string }
	}
}

// node reads a Node of the cluster.
func (c *cluster) node(t *testing.T, name string) (n node, err error) {
	t.Helper()
	out, err := c.kubectl(t, "", "get", "node", name, "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &n)
	}
	return n, err
}

// nodeReady says what a master's Node lacks: it is to be Ready, of the VM's present boot, and with that one taint
// alone.
func (c *cluster) nodeReady(t *testing.T, vm string) error {
	t.Helper()
	n, err := c.node(t, vm)
	if err != nil {
		return err
	}
	if boot := strings.TrimSpace(c.in(t, vm, "cat /proc/sys/kernel/random/boot_id")); n.Status.NodeInfo.BootID != boot {
		return fmt.Errorf("%s is a Node of boot %s, the VM's is %s", vm, n.Status.NodeInfo.BootID, boot)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" && c.Status != "True" {
			return fmt.Errorf("%s is not Ready: %s", vm, c.Message)
		}
	}
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "node-role.kubernetes.io/control-plane" ||
		n.Spec.Taints[0].Effect != "NoSchedule" {
		return fmt.Errorf("%s has the taints %+v", vm, n.Spec.Taints)
	}
	if len(n.Status.Conditions) == 0 || n.Spec.PodCIDR == "" {
		return fmt.Errorf("%s has said nothing yet: %+v", vm, n)
	}
	return nil
}

func nodesReady(t *testing.T, c *cluster) {
	c.awaitWhole(t)
	ranges := map[string]string{}
	for _, vm := range c.vms {
		await(t, "the Node of "+vm, func() error { return c.nodeReady(t, vm) })
		n, err := c.node(t, vm)
		c.must(t, err)
		if other, taken := ranges[n.Spec.PodCIDR]; taken {
			t.Errorf("%s and %s have one range for their pods: %s", vm, other, n.Spec.PodCIDR)
		}
		ranges[n.Spec.PodCIDR] = vm
		if failed := strings.TrimSpace(c.in(t, vm, "systemctl --failed --no-legend --plain")); failed != "" {
			t.Errorf("units of %s have failed: %s", vm, failed)
		}
	}
}

// pod is one of the Deployment's.
type pod struct {
	Metadata struct{ Name string }
	Spec     struct{ NodeName string }
	Status   struct {
		PodIP             string
		ContainerStatuses []struct {
			Ready       bool
			ContainerID string
		}
	}
}

// listPods are all of the Deployment's.
func (c *cluster) listPods(t *testing.T) ([]pod, error) {
	t.Helper()
	out, err := c.kubectl(t, "", "get", "pods", "-l", "app=programs", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct{ Items []pod }
	err = json.Unmarshal([]byte(out), &list)
	return list.Items, err
}

// pods are the Deployment's by their Node; an error says which master has none that is ready.
func (c *cluster) pods(t *testing.T) (map[string]pod, error) {
	t.Helper()
	all, err := c.listPods(t)
	if err != nil {
		return nil, err
	}
	found := map[string]pod{}
	for _, p := range all {
		if len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].Ready {
			found[p.Spec.NodeName] = p
		}
	}
	for _, vm := range c.vms {
		if _, ok := found[vm]; !ok {
			return nil, fmt.Errorf("%s runs none of the pods: %+v", vm, all)
		}
	}
	return found, nil
}

// awaitPods waits until each master runs one.
func (c *cluster) awaitPods(t *testing.T) (found map[string]pod) {
	t.Helper()
	await(t, "a pod on each master", func() (err error) {
		found, err = c.pods(t)
		return err
	})
	return found
}

func podsRun(t *testing.T, c *cluster) {
	c.mustKubectl(t, "", "apply", "-f", "pods.yaml")
	c.awaitPods(t)
}

// logsAndExec goes through each apiserver to each kubelet.
func logsAndExec(t *testing.T, c *cluster) {
	pods := c.awaitPods(t)
	for _, through := range c.vms {
		for vm, p := range pods {
			server := c.vm(through).Address
			if out := c.mustKubectl(t, server, "logs", p.Metadata.Name); !strings.Contains(out,
				"Starting to serve on") {
				t.Errorf("the log of the pod on %s, through %s: %q", vm, through, out)
			}
			out := c.mustKubectl(t, server, "exec", p.Metadata.Name, "--", "/programs/quorate", "version")
			if want := c.in(t, vm, "quorate version"); out != want {
				t.Errorf("in the pod on %s, through %s: %q, want %q", vm, through, out, want)
			}
		}
	}
}

func bridged(t *testing.T, c *cluster) {
	for vm, p := range c.awaitPods(t) {
		out := c.in(t, vm, "ip -o addr show cni0; curl -s -m 5 http://"+p.Status.PodIP+":8080/programs/")
		if !strings.Contains(out, "kube-apiserver") {
			t.Errorf("the pod on %s answers %q", vm, out)
		}
	}
}

// recreatedFromImage takes the leader: the one that is missed most.
func recreatedFromImage(t *testing.T, c *cluster) {
	vm := c.leader(t)
	before := c.vm(vm)
	since := time.Now()
	c.must(t, c.RecreateVM(t.Context(), vm, localgce.Recreation{Wipe: true}))
	await(t, "whole again", c.whole)
	t.Logf("%s is a voter with a ready apiserver %s after its recreation", vm,
		time.Since(since).Round(time.Millisecond))
	await(t, "the Node of "+vm, func() error { return c.nodeReady(t, vm) })
	t.Logf("and a Ready Node after %s", time.Since(since).Round(time.Millisecond))
	if after := c.vm(vm); after.InstanceID == before.InstanceID || after.DiskID == before.DiskID {
		t.Errorf("recreated: %+v was %+v", after, before)
	}
	logsAndExec(t, c)
}

func agentDies(t *testing.T, c *cluster) {
	vm := c.vms[0]
	before := c.awaitPods(t)
	cmd, err := c.Command(t.Context(), vm, "sh", "-c", "systemctl kill --signal KILL quorate; sleep 3; echo lived on")
	c.must(t, err)
	out, err := cmd.Output()
	if err != nil || string(out) != "lived on\n" {
		t.Errorf("a command that was running when the agent died: %q, %v", out, err)
	}
	await(t, "whole again", c.whole)
	if s := c.vm(vm).Agent; s.Restarts != 1 || s.LastExit != "signal SIGKILL" {
		t.Errorf("the agent after its death: %+v", s)
	}
	for on, p := range c.awaitPods(t) {
		if was := before[on].Status.ContainerStatuses[0].ContainerID; p.Status.ContainerStatuses[0].ContainerID != was {
			t.Errorf("the pod on %s was started again", on)
		}
	}
}

// tellUnits prints, where a test has failed, what the kubelets and the runtimes have said last.
func (c *cluster) tellUnits(t *testing.T) {
	t.Helper()
	if !t.Failed() || c.Project == nil {
		return
	}
	for _, vm := range c.vms {
		// Not t's context: it has ended where this is a cleanup.
		cmd, err := c.Command(context.Background(), vm, "journalctl", "--no-pager", "-n", "25", "-u", "kubelet", "-u",
			"containerd")
		if err != nil {
			continue // it is off
		}
		out, _ := cmd.CombinedOutput()
		t.Logf("%s:\n%s", vm, out)
	}
}
