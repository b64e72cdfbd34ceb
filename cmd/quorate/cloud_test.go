package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// guardedCloud is a bucket, a Compute API and a metadata server, with nothing in them. The first two want one token.
type guardedCloud struct {
	mu    sync.Mutex
	wants string // what the services want
	gives string // what the metadata server gives; empty: it is away; "silence": it does not answer
	seen  []string
}

func (g *guardedCloud) set(wants, gives string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wants, g.gives = wants, gives
}

func (g *guardedCloud) metadata(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	gives := g.gives
	g.mu.Unlock()
	switch gives {
	case "":
		panic(http.ErrAbortHandler)
	case "silence":
		<-r.Context().Done()
	}
	w.Header().Set("Metadata-Flavor", "Google")
	fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600,"token_type":"Bearer"}`, gives)
}

func (g *guardedCloud) services(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	auth := r.Header.Get("Authorization")
	g.seen = append(g.seen, auth)
	if g.wants != "" && auth != "Bearer "+g.wants {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	kind := "storage#objects"
	if strings.HasPrefix(r.URL.Path, "/compute/v1/") {
		kind = "compute#instanceAggregatedList"
	}
	fmt.Fprintf(w, `{"kind":%q}`, kind)
}

// document is a cluster whose record and Compute API the servers are.
func (g *guardedCloud) document(t *testing.T) *replica.Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(g.services))
	t.Cleanup(server.Close)
	return &replica.Cluster{Name: "demo", Record: replica.Record{URL: "gs://bucket?endpoint=" + server.URL},
		Seal:    replica.Seal{Key: "base64key://" + strings.Repeat("A", 43) + "="},
		Compute: replica.Compute{Endpoint: server.URL + "/compute/v1/"}}
}

// An agent asks for everything as its VM. It begins also where the metadata server is away, needs no restart once
// that is back or another token is wanted, and what it asks ends with its time.
func TestAnAgentIsItsVM(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/absent")
	g := &guardedCloud{wants: "one"}
	server := httptest.NewServer(http.HandlerFunc(g.metadata))
	defer server.Close()
	metadata := gce.NewMetadata(gce.MetadataConfig{Host: strings.TrimPrefix(server.URL, "http://"),
		Wait: 6 * time.Second})
	cloud, err := cloudOpener(metadata)(t.Context(), replica.Identity{Project: "demo"}, g.document(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what, wants, gives string
		ok                 bool
	}{
		{"the metadata server is away", "one", "", false},
		{"it is back", "one", "one", true},
		{"another token is wanted", "two", "two", true},
		{"a third is wanted, and the metadata server is silent", "three", "silence", false},
		{"it speaks again", "three", "three", true},
	} {
		g.set(step.wants, step.gives)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if !step.ok {
			ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
		}
		begin := time.Now()
		_, recordErr := cloud.Record.View(ctx)
		_, _, computeErr := cloud.Compute.VMs(ctx)
		cancel()
		if (recordErr == nil) != step.ok || (computeErr == nil) != step.ok {
			t.Errorf("%s: record %v, Compute API %v", step.what, recordErr, computeErr)
		}
		if took := time.Since(begin); !step.ok && took > 2*time.Second {
			t.Errorf("%s: both gave up after %s: want the 200 ms that they were given", step.what, took)
		}
		if !step.ok && !errors.Is(recordErr, record.ErrRecord) {
			t.Errorf("%s: %v", step.what, recordErr)
		}
	}
}

// A person's token is for Google alone: a document may be another person's.
func TestAnOperatorsTokenGoesToNoStandIn(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/absent")
	g := &guardedCloud{}
	store, err := cluster.OpenRecord(g.document(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.View(t.Context()); err != nil {
		t.Error(err)
	}
	if len(g.seen) == 0 || strings.Join(g.seen, "") != "" {
		t.Errorf("the stand-in was sent %q", g.seen)
	}
}

// A VM asks for itself by its name and for its disk where its URL says, zone or region: no other zone has to answer,
// and nothing is listed.
func TestTheDataDisksIDIsFoundByTheOwnVM(t *testing.T) {
	const vm = `{"name":"m1","id":"1","status":"RUNNING","disks":[{"deviceName":"boot","source":"https://x/projects/demo/zones/za/disks/m1"},
		{"deviceName":"data","source":"https://x/projects/demo/%s/disks/m1-data"}]}`
	for name, tc := range map[string]struct{ instance, device, id, want string }{
		"a zonal disk":    {fmt.Sprintf(vm, "zones/za"), "data", "77", ""},
		"a regional disk": {fmt.Sprintf(vm, "regions/r"), "data", "78", ""},
		"another device name": {fmt.Sprintf(vm, "zones/za"), "other", "",
			`no disk with the device name "other"`},
		"another instance has the name": {strings.Replace(vm, `"id":"1"`, `"id":"2"`, 1), "data", "",
			"shows instance 2"},
		"a disk that may not be asked for":  {fmt.Sprintf(vm, "zones/zb"), "data", "", "status 403"},
		"a VM that is not there by its API": {"", "data", "", "has no instance za.m1"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch path := strings.TrimPrefix(r.URL.Path, "/compute/v1/projects/demo/"); {
				case path == "zones/za/instances/m1" && tc.instance == "":
					w.WriteHeader(http.StatusNotFound)
					fmt.Fprint(w,
						`{"error":{"code":404,"message":"The resource 'projects/demo/zones/za/instances/m1' was not found"}}`)
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
			compute, err := gce.NewCompute(gce.ComputeConfig{Project: "demo", Cluster: "demo",
				Endpoint: server.URL + "/compute/v1/", Wait: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			self := replica.Identity{Place: replica.Place{Zone: "za", Name: "m1"}, InstanceID: "1"}
			disk, err := dataDisk(context.Background(), compute, self, tc.device)
			id := disk.ID
			if id != tc.id || (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %+v, %v, want %q, %q", disk, err, tc.id, tc.want)
			}
		})
	}
}
