package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/replica"
)

// guide is the page that makes masters without quorate's commands.
const guide = "../docs/gce.md"

// Who makes masters by gcloud, or has a group recreate them, makes what `quorate create` makes by the page's document.
func TestTheGuidesCommandsMakeTheSameVM(t *testing.T) {
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	vm := insertedVM(t, string(page))
	want, disk := flagsOf(vm), map[string]string{"device-name": vm.Disks[1].DeviceName, "auto-delete": "no", "mode": "rw"}
	for command, attached := range map[string]map[string]string{
		"instances create master-$z": {"name": "master-$z-data"},
		"instance-templates create prod-1-master": {"type": "pd-ssd",
			"size": "50GB"},
	} {
		flags := gcloudFlags(t, string(page), command)
		data := flags["disk"] + flags["create-disk"]
		maps.Copy(attached, disk)
		if got := pairs(data); !maps.Equal(got, attached) {
			t.Errorf("%s: its data disk is %v, and that of quorate create %v", command, got, attached)
		}
		for _, own := range []string{"disk", "create-disk", "zone"} {
			delete(flags, own)
		}
		if !maps.Equal(flags, want) {
			for _, name := range slices.Sorted(maps.Keys(union(flags, want))) {
				if flags[name] != want[name] {
					t.Errorf("%s: --%s is %q, and of what quorate create makes %q", command, name, flags[name], want[name])
				}
			}
		}
	}
}

// insertedVM is the VM that create asks Google for, by the page's document.
func insertedVM(t *testing.T, page string) compute.Instance {
	t.Helper()
	document := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindStringSubmatch(page)
	if document == nil {
		t.Fatal("the page has no document")
	}
	c, err := replica.Load(replica.Source{Name: guide, Data: []byte(document[1])})
	if err != nil {
		t.Fatal(err)
	}
	var vm compute.Instance
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &vm); r.Method == http.MethodPost && err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusBadRequest) // what is asked for is enough
	}))
	defer api.Close()
	cloud, err := gce.NewOperator(gce.ComputeConfig{Project: c.GCE.Project, Cluster: c.Name, Region: c.GCE.Region,
		Endpoint: api.URL + "/compute/v1/", Client: api.Client()})
	if err != nil {
		t.Fatal(err)
	}
	f := Fleet{Document: c, DataDevice: c.Etcd.DataDisk, Metadata: map[string]string{"quorate-cluster": "cluster.yaml"}}
	spec := f.vmSpec(plan.Step{Place: replica.Place{Zone: "us-central1-a", Name: "master-a"}, Disk: "master-a-data",
		Image: c.GCE.ImagePath()})
	if err := cloud.InsertVM(t.Context(), "us-central1-a", spec); err == nil || len(vm.Disks) != 2 {
		t.Fatalf("nothing was asked for: %v", err)
	}
	return vm
}

// flagsOf are gcloud's flags for a VM.
func flagsOf(vm compute.Instance) map[string]string {
	last := func(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }
	boot, s, shield := vm.Disks[0].InitializeParams, vm.Scheduling, vm.ShieldedInstanceConfig
	out := map[string]string{"machine-type": last(vm.MachineType), "image": last(boot.SourceImage),
		"boot-disk-type": last(boot.DiskType), "boot-disk-size": fmt.Sprintf("%dGB", boot.DiskSizeGb),
		"network": last(vm.NetworkInterfaces[0].Network), "maintenance-policy": s.OnHostMaintenance,
		"host-error-timeout-seconds": fmt.Sprint(s.HostErrorTimeoutSeconds), "service-account": "$SA",
		"scopes": last(vm.ServiceAccounts[0].Scopes[0]), "labels": "quorate-cluster=" + vm.Labels["quorate-cluster"],
		"metadata-from-file": vm.Metadata.Items[0].Key + "=" + *vm.Metadata.Items[0].Value}
	for flag, on := range map[string]bool{"can-ip-forward": vm.CanIpForward, "restart-on-failure": *s.AutomaticRestart,
		"no-address":                    len(vm.NetworkInterfaces[0].AccessConfigs) == 0,
		"no-shielded-secure-boot":       !shield.EnableSecureBoot,
		"shielded-vtpm":                 shield.EnableVtpm,
		"shielded-integrity-monitoring": shield.EnableIntegrityMonitoring} {
		if on {
			out[flag] = "on"
		}
	}
	return out
}

// gcloudFlags are the flags of a command of the page; those without a value are on.
func gcloudFlags(t *testing.T, page, command string) map[string]string {
	t.Helper()
	_, after, found := strings.Cut(strings.ReplaceAll(page, "\\\n", ""), "gcloud compute "+command+" ")
	if !found {
		t.Fatalf("the page does not have gcloud compute %s", command)
	}
	line, _, _ := strings.Cut(after, "\n")
	out := map[string]string{}
	for _, flag := range strings.Fields(line) {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if value == "" {
			value = "on"
		}
		out[name] = value
	}
	return out
}

// pairs are the values of a flag such as a=b,c=d.
func pairs(text string) map[string]string {
	out := map[string]string{}
	for _, pair := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		out[name] = value
	}
	return out
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}
