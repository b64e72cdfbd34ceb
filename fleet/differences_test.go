package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/replica"
)

// someDocument is a Cluster document with one line more.
func someDocument(more string) string {
	return `apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: prod-1
endpoint: {externalIP: 203.0.113.10}
record: {url: gs://bucket}
seal: {key: gcpkms://projects/p/locations/us-central1/keyRings/quorate/cryptoKeys/demo}
` + more + "\n"
}

const someGCE = "project: example, region: us-central1, zones: [us-central1-a], image: i, " +
	"serviceAccount: m@example.iam.gserviceaccount.com"

// Each field of the section gce, and the document that agents read: what a roll would make otherwise, it names.
func TestWhatDiffersOfAVM(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(w *world, v *vm, g *replica.GCE)
		want   string
	}{
		"nothing": {func(*world, *vm, *replica.GCE) {}, ""},
		"the machine type": {func(_ *world, v *vm, _ *replica.GCE) { v.MachineType = "n2-standard-8" },
			"gce.machineType n2-standard-8 e2-standard-4"},
		"the boot disk": {func(_ *world, v *vm, _ *replica.GCE) { v.Boot.Type, v.Boot.SizeGB = "pd-standard", 10 },
			"gce.bootDisk.type pd-standard pd-balanced; gce.bootDisk.sizeGB 10 20"},
		"the service account": {func(_ *world, v *vm, _ *replica.GCE) { v.ServiceAccount = "" },
			"gce.serviceAccount  271828182845-compute@developer.gserviceaccount.com"},
		"the network": {func(_ *world, v *vm, _ *replica.GCE) { v.Network = "projects/example/global/networks/n" },
			"gce.network projects/example/global/networks/n projects/example/global/networks/default"},
		"a subnetwork that the document names": {func(_ *world, v *vm, g *replica.GCE) {
			v.Subnetwork, g.Subnetwork = "projects/example/regions/us-central1/subnetworks/a", "b"
		}, "gce.subnetwork projects/example/regions/us-central1/subnetworks/a " +
			"projects/example/regions/us-central1/subnetworks/b"},
		"a subnetwork that Google chose": {func(_ *world, v *vm, _ *replica.GCE) {
			v.Subnetwork = "projects/example/regions/us-central1/subnetworks/a"
		}, ""},
		"a tag more": {func(_ *world, v *vm, _ *replica.GCE) { v.Tags = append(v.Tags, "z") },
			"gce.tags infra,masters,z infra,masters"},
		"tags in other order": {func(_ *world, v *vm, _ *replica.GCE) { v.Tags = []string{"infra", "masters"} }, ""},
		"no tag any more":     {func(_ *world, _ *vm, g *replica.GCE) { g.Tags = nil }, "gce.tags infra,masters "},
		"a label": {func(_ *world, _ *vm, g *replica.GCE) { g.Labels = map[string]string{"team": "web"} },
			"gce.labels.team infra web"},
		"a label of somebody else's": {func(_ *world, v *vm, _ *replica.GCE) { v.Labels["goog-x"] = "1" }, ""},
		"the data disk": {func(w *world, v *vm, _ *replica.GCE) {
			w.disks[v.Place.Zone+"/"+v.DataDisk].SizeGB = 60
		}, "gce.dataDisk.sizeGB 60 50"},
		"no document": {func(_ *world, v *vm, _ *replica.GCE) { delete(v.Metadata, "quorate-cluster") },
			fmt.Sprintf("metadata.quorate-cluster  a text of %d bytes", len(someDocument("replicas: 3")))},
		"a document that cannot be read": {func(_ *world, v *vm, _ *replica.GCE) { v.Metadata["quorate-cluster"] = "x" },
			fmt.Sprintf("metadata.quorate-cluster a text of 1 bytes a text of %d bytes", len(someDocument("replicas: 3")))},
		"a document with another comment": {func(_ *world, v *vm, _ *replica.GCE) {
			v.Metadata["quorate-cluster"] = "# old\n" + someDocument("replicas: 3")
		}, ""},
		"a document that says something else": {func(_ *world, v *vm, _ *replica.GCE) {
			v.Metadata["quorate-cluster"] = someDocument("replicas: 3\nelection: slow")
		}, "metadata.quorate-cluster.election slow fast"},
		"a document with another section gce": {func(_ *world, v *vm, _ *replica.GCE) {
			v.Metadata["quorate-cluster"] = someDocument("replicas: 3\ngce: {" + someGCE + "}")
		}, ""},
		"a document with another load balancer": {func(_ *world, v *vm, _ *replica.GCE) {
			v.Metadata["quorate-cluster"] = someDocument("replicas: 3\ngce: {" + someGCE +
				", loadBalancer: {type: external}}")
		}, "metadata.quorate-cluster.gce.loadBalancer.name prod-1 ; " +
			"metadata.quorate-cluster.gce.loadBalancer.type external none"},
		"another attribute": {func(_ *world, v *vm, _ *replica.GCE) { v.Metadata["ssh-keys"] = "x" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(t *testing.T, w *world) {
				f := fleetOf(w)
				g := f.Document.GCE
				f.Metadata["quorate-cluster"] = someDocument("replicas: 3")
				g.BootDisk = replica.GCEDisk{Type: "pd-balanced", SizeGB: 20}
				g.DataDisk = replica.GCEDisk{Type: "pd-ssd", SizeGB: 50}
				for _, d := range w.disks {
					d.Type, d.SizeGB = "pd-ssd", 50
				}
				w.rules = rules{inPlace: true}
				if _, err := f.Run(t.Context(), plan.Wish{Kind: plan.Roll}, talk(nil)); err != nil {
					t.Fatal(err)
				}
				tc.change(w, w.vms[place(1)], g)
				r, err := f.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, d := range r.Inventory.VMs[1].Differs {
					got = append(got, fmt.Sprint(d.Field, " ", d.Found, " ", d.Wanted))
				}
				if text := strings.Join(got, "; "); text != tc.want {
					t.Errorf("got  %s\nwant %s", text, tc.want)
				}
			})
		})
	}
}
