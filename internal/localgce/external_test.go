package localgce_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/replica"
)

// TestAnExternalAddressLeadsToItsVMAlone moves the endpoint's address from one VM to another, and to a forwarding rule.
// A connection of before is answered with a reset.
func TestAnExternalAddressLeadsToItsVMAlone(t *testing.T) {
	const address, url = "10.243.21.100", "https://10.243.21.100/name"
	w := start(t, config(t.TempDir(), 21, "a", "b"))
	w.awaitReady("a", "b")
	ctx, c := t.Context(), w.cloud()
	ids, places := map[string]string{}, map[string]replica.Place{}
	for _, i := range w.Instances() {
		ids[i.Name], places[i.Name] = fmt.Sprint(i.ID), replica.Place{Zone: i.Zone, Name: i.Name}
	}
	leadsTo := func(name string) (ask func() (string, error)) {
		t.Helper()
		ask = keptOpen(t, url)
		w.await("led to "+name, func() bool {
			got, err := ask()
			if err != nil {
				ask = keptOpen(t, url)
			}
			return got == name
		})
		return ask
	}
	broken := func(what string, ask func() (string, error)) {
		t.Helper()
		if got, err := ask(); err == nil || os.IsTimeout(err) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	w.do(c.GiveAddress(ctx, places["a"], ids["a"], address))
	held := leadsTo("a")
	if got := w.must("a", "/usr/local/bin/tiny tiny get http://metadata.google.internal/computeMetadata/v1/instance/"+
		"network-interfaces/0/access-configs/0/external-ip"); strings.TrimSpace(got) != address {
		t.Errorf("the metadata says %q", got)
	}
	w.do(c.TakeAddress(ctx, places["a"], ids["a"], address))
	if got, err := keptOpen(t, url)(); err == nil {
		t.Errorf("nobody has the address, and %s answers", got)
	}
	w.do(c.GiveAddress(ctx, places["b"], ids["b"], address))
	other := leadsTo("b")
	w.do(c.TakeAddress(ctx, places["b"], ids["b"], address))

	s := gce.Surroundings{Project: localgce.ProjectID, Cluster: "demo", Region: "us-central1", Name: "demo", Port: 443,
		Network: "projects/" + localgce.ProjectID + "/global/networks/default", Scheme: "EXTERNAL", Address: address,
		Zones: []string{places["a"].Zone}}
	wanted, _, err := c.Surroundings(ctx, s)
	w.do(err)
	for _, r := range wanted[1:] {
		w.do(c.InsertResource(ctx, r))
	}
	_, err = c.Attach(ctx, "demo", gce.Endpoint{Place: places["a"], Address: w.Instances()[0].Address})
	w.do(err)
	third := leadsTo("a")
	broken("of a VM that had it before", other)
	broken("of one that had it once", held)

	_, there, err := c.Surroundings(ctx, s)
	w.do(err)
	w.do(c.DeleteResource(ctx, there[len(there)-1]))
	w.do(c.GiveAddress(ctx, places["b"], ids["b"], address))
	leadsTo("b")
	broken("of the forwarding rule", third)
}
