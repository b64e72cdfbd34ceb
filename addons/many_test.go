package addons

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/quorate/quorate/addons/plan"
)

// TestThreeManagersOverAThousandObjects is the steady state of a large folder on three replicas. Its hour is shortened:
// the managers resync each 3 s instead of each 30 s, so six minutes hold as many passes as an hour.
func TestThreeManagersOverAThousandObjects(t *testing.T) {
	if os.Getenv("QUORATE_ADDONS") == "" {
		t.Skip("takes ten minutes; make addons runs it")
	}
	withCluster(t, func(t *testing.T, c *realCluster) {
		const objects, factor = 1000, 10
		files := map[string]string{"version": "1"}
		for n := range 10 {
			files[fmt.Sprintf("ns/%d.yaml", n)] = namespaceYAML(fmt.Sprintf("many-%d", n))
		}
		for n := range objects - 10 {
			namespace, name := fmt.Sprintf("many-%d", n%10), fmt.Sprintf("object-%d", n)
			switch n % 5 {
			case 0:
				files["secrets/"+name+".yaml"] = fmt.Sprintf("apiVersion: v1\nkind: Secret\n"+
					"metadata: {namespace: %s, name: %s}\nstringData: {key: value}\n", namespace, name)
			case 1:
				files["services/"+name+".yaml"] = fmt.Sprintf("apiVersion: v1\nkind: Service\n"+
					"metadata: {namespace: %s, name: %s}\nspec: {ports: [{port: 80}], selector: {app: x}}\n", namespace,
					name)
			case 2:
				files["deployments/"+name+".yaml"] = fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\n"+
					"metadata: {namespace: %s, name: %s}\nspec:\n  selector: {matchLabels: {app: x}}\n  template:\n"+
					"    metadata: {labels: {app: x}}\n    spec: {containers: [{name: c, image: none}]}\n", namespace,
					name)
			default:
				files["configmaps/"+name+".yaml"] = configMapYAML(namespace, name, "value")
			}
		}
		folder := writeFolder(t, t.TempDir(), files)
		c.grant(t, folder)
		pace := Pace{Resync: defaultResync / factor, Poll: defaultPoll / factor}
		begun := time.Now()
		var all []*running
		for _, name := range []string{"master-a", "master-b", "master-c"} {
			all = append(all, c.manage(t, name, folder, pace))
		}
		for _, m := range all {
			eventually(t, "all are in place", patience, func() error {
				s, err := m.status()
				if err == nil && !allInPlace(objects)(s) {
					err = fmt.Errorf("%d of %d are in place", s.InPlace, s.Objects)
				}
				return err
			})
		}
		list, at := c.requests(t, 0)
		writes, dry := writesOf(list)
		t.Logf("all in place after %s: %d requests, %d dry runs, %d writes by three managers",
			time.Since(begun).Round(time.Second), len(list), len(dry), len(writes))
		twoPasses(t, all) // each compares once more what the others wrote
		_, at = c.requests(t, at)
		before := make([]plan.Status, len(all))
		for i, m := range all {
			before[i], _ = m.status()
		}
		cpu := ownCPU(t)
		time.Sleep(time.Hour / factor)
		t.Logf("the three managers used %.1f %% of a core", 100*(ownCPU(t)-cpu).Seconds()/(time.Hour/factor).Seconds())
		list, at = c.requests(t, at)
		writes, dry = writesOf(list)
		t.Logf("a steady hour by %d times the pace: %d requests, %d dry runs, %d writes", factor, len(list), len(dry),
			len(writes))
		if len(writes) > 0 || len(list) < 1000 {
			t.Errorf("of %d requests these write: %v", len(list), writes)
		}
		for i, m := range all {
			if s, err := m.status(); err != nil || s.Writes != before[i].Writes || !s.Pass.After(before[i].Pass) {
				t.Errorf("manager %d counts %d writes, before that %d (%v)", i, s.Writes, before[i].Writes, err)
			}
		}
		changed := c.configMap(t, "many-3", "object-3")
		changed.Data["key"] = "by hand"
		if err := c.admin.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		hand := time.Now()
		eventually(t, "what was changed by hand is right again", patience, func() error {
			if got := c.configMap(t, "many-3", "object-3").Data["key"]; got != "value" {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		})
		t.Logf("an object changed by hand was right again after %s", time.Since(hand).Round(time.Millisecond))
		twoPasses(t, all)
		list, _ = c.requests(t, at)
		if writes, _ = writesOf(list); len(writes) > len(all) {
			t.Errorf("one changed object led to %d writes of three managers: %v", len(writes), writes)
		}
	})
}

// patience is for a busy machine. There a pass, which reads 200 Secrets by name, takes a minute instead of a second.
const patience = 5 * time.Minute

// twoPasses waits until each manager has begun and ended a pass.
func twoPasses(t *testing.T, all []*running) {
	t.Helper()
	for range 2 {
		before := make([]plan.Status, len(all))
		for i, m := range all {
			before[i], _ = m.status()
		}
		for i, m := range all {
			eventually(t, "another pass has ended", patience, func() error {
				s, err := m.status()
				if err == nil && !s.Pass.After(before[i].Pass) {
					err = fmt.Errorf("the last was at %s", s.Pass)
				}
				return err
			})
		}
	}
}
