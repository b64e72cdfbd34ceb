package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/fleet"
)

// TestKubeUpsProcedures runs what docs/from-kube-up.md shows to somebody who knows kube-up alone, line by line: a
// cluster of one master that grows to three, a replica that fails, and the way back. Clients write and read meanwhile.
func TestKubeUpsProcedures(t *testing.T) {
	t.Parallel()
	fleetOf(t, 1).kubeUpsProcedures(t, beside{})
}

// beside is what a test does around the procedures.
type beside struct {
	// first runs when the first master is there, last when no other is left and before that one goes. nil: nothing.
	first, last func()
}

// kubeUpsProcedures goes through the page's procedures, while clients write and read.
func (c *cluster) kubeUpsProcedures(t *testing.T, also beside) {
	t.Helper()
	steps := kubeUpsProcedures(t)
	start, add, failed, remove := steps[0], steps[1], steps[2], steps[3]
	c.follow(t, start[0], nil)
	c.want(t, 1)
	if also.first != nil {
		also.first()
	}
	l := c.startWriters(t)
	c.follow(t, add[0], nil)
	c.want(t, 2)
	c.follow(t, add[1], nil)
	three := c.want(t, 3)
	c.invariants(t, l)

	l = c.startWriters(t)
	broken := three[slices.IndexFunc(three, func(r fleet.ListedReplica) bool { return r.Leads })]
	c.must(t, c.KillVM(t.Context(), broken.Name))
	names := map[string]string{"FAILED": broken.Name, "ZONE": broken.Zone}
	for _, line := range failed {
		c.follow(t, line, names)
	}
	for _, r := range c.want(t, 3) {
		if r.Name == broken.Name {
			t.Errorf("%s is still there", r.Name)
		}
	}
	c.invariants(t, l)

	c.follow(t, remove[0], nil)
	two := c.want(t, 2)
	for _, r := range two {
		if r.Zone == "us-central1-c" {
			t.Errorf("%s is still there", r.Name)
		}
	}
	second := two[slices.IndexFunc(two, func(r fleet.ListedReplica) bool { return !r.Leads })]
	c.follow(t, remove[1], map[string]string{"NAME": second.Name})
	if left := c.want(t, 1); left[0].Name == second.Name {
		t.Errorf("%s is still there", second.Name)
	}
	orders, err := filepath.Glob(filepath.Join(c.record(), "orders", "*.json"))
	c.must(t, err)
	for _, file := range orders {
		text, err := os.ReadFile(file)
		c.must(t, err)
		var order struct{ Replicas int }
		c.must(t, json.Unmarshal(text, &order))
		if order.Replicas > 3 {
			t.Errorf("more replicas were ordered than there ever were: %s", text)
		}
	}
	if also.last != nil {
		also.last()
	}
	c.follow(t, remove[2], nil)
	for _, v := range c.Status().VMs {
		if v.Name != theWorker {
			t.Errorf("left: %+v", v)
		}
	}
}

// kubeUpsProcedures are the command lines of each fence of the page's last section.
func kubeUpsProcedures(t *testing.T) (out [][]string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "from-kube-up.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, procedures, _ := strings.Cut(string(page), "\n## Its procedures\n")
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)\n```$").FindAllStringSubmatch(procedures, -1) {
		out = append(out, strings.Split(m[1], "\n"))
	}
	lines := 0
	for _, fence := range out {
		lines += len(fence)
	}
	if len(out) != 4 || lines != 9 {
		t.Fatalf("the page has other procedures than this test knows: %q", out)
	}
	return out
}

// follow runs a line of the page as it stands there, but for the names and the document's place.
func (c *cluster) follow(t *testing.T, line string, names map[string]string) {
	t.Helper()
	var args []string
	for _, word := range strings.Fields(line)[1:] {
		if name, stands := names[word]; stands {
			word = name
		}
		if word != "cluster.yaml" && word != "-f" && word != "--config" { // commanded says which document
			args = append(args, word)
		}
	}
	if args[0] == "list" {
		if _, err := c.quorate(t, args...); err != nil {
			t.Fatal(err)
		}
		return
	}
	c.commanded(t, 0, args...)
}

// want is wantFleet for all masters of the project, which are then the cluster's. The disks of those that were removed
// are kept.
func (c *cluster) want(t *testing.T, masters int) []fleet.ListedReplica {
	t.Helper()
	list := c.wantFleet(t, masters, anySpare)
	c.vms = namesOf(list)
	return list
}
