package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/replica"
)

// A VM asks for itself by its name and for its disk where its URL says, zone or region: no other zone has to answer,
// and nothing is listed.
func TestTheDataDisksIDIsFoundByTheOwnVM(t *testing.T) {
	const vm = `{"name":"m1","id":"1","status":"RUNNING","disks":[{"deviceName":"boot","source":"https://x/projects/demo/zones/za/disks/m1"},
		{"deviceName":"data","source":"https://x/projects/demo/%s/disks/m1-data"}]}`
	for name, tc := range map[string]struct{ instance, device, id, want string }{
		"a zonal disk":                      {fmt.Sprintf(vm, "zones/za"), "data", "77", ""},
		"a regional disk":                   {fmt.Sprintf(vm, "regions/r"), "data", "78", ""},
		"another device name":               {fmt.Sprintf(vm, "zones/za"), "other", "", `no disk with the device name "other"`},
		"another instance has the name":     {strings.Replace(vm, `"id":"1"`, `"id":"2"`, 1), "data", "", "shows instance 2"},
		"a disk that may not be asked for":  {fmt.Sprintf(vm, "zones/zb"), "data", "", "status 403"},
		"a VM that is not there by its API": {"", "data", "", "has no instance za.m1"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch path := strings.TrimPrefix(r.URL.Path, "/compute/v1/projects/demo/"); {
				case path == "zones/za/instances/m1" && tc.instance == "":
					w.WriteHeader(http.StatusNotFound)
					fmt.Fprint(w, `{"error":{"code":404,"message":"The resource 'projects/demo/zones/za/instances/m1' was not found"}}`)
				case path == "zones/za/instances/m1":
					fmt.Fprint(w, tc.instance)
				case path == "zones/za/disks/m1-data":
					fmt.Fprint(w, `{"name":"m1-data","id":"77"}`)
				case path == "regions/r/disks/m1-data":
					fmt.Fprint(w, `{"name":"m1-data","id":"78"}`)
				case path == "zones/zb/disks/m1-data":
					w.WriteHeader(http.StatusForbidden)
					fmt.Fprint(w, `{"error":{"code":403,"message":"no"}}`)
				default:
					t.Errorf("asked %s", r.URL)
				}
			}))
			defer server.Close()
			compute, err := gce.NewCompute(gce.ComputeConfig{Project: "demo", Endpoint: server.URL + "/compute/v1/", Wait: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			api := &computeAPI{compute: compute, cluster: "demo"}
			id, err := api.diskID(context.Background(), replica.Identity{Place: replica.Place{Zone: "za", Name: "m1"}, InstanceID: "1"}, tc.device)
			if id != tc.id || (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, %v, want %q, %q", id, err, tc.id, tc.want)
			}
		})
	}
}
