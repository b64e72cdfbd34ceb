package compute_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/gce"
	local "github.com/quorate/quorate/internal/localgce/compute"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/settings"
)

// memory is a project whose VMs are records. It holds what is asked of it to what was promised: no disk is attached
// twice, nothing is deleted that is not there.
type memory struct {
	mu       sync.Mutex
	vms      []instance.VM
	disks    []instance.VM // each the only disk of one without a name
	bootFail error
	wrong    []error
}

func (m *memory) instances() []instance.VM {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.vms)
}

func (m *memory) unattached() []instance.VM {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.disks)
}

// change makes one change, and keeps the error that it should not have had.
func (m *memory) change(f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := f()
	if err != nil && !errors.Is(err, m.bootFail) {
		m.wrong = append(m.wrong, err)
	}
	return err
}

func (m *memory) vm(id uint64) int {
	return slices.IndexFunc(m.vms, func(i instance.VM) bool { return i.ID == id })
}

func (m *memory) diskAt(id uint64) int {
	return slices.IndexFunc(m.disks, func(i instance.VM) bool { return i.DataDisk.ID == id })
}

// AddInstance implements compute.Changes.
func (m *memory) AddInstance(i instance.VM) error {
	return m.change(func() error {
		n := m.diskAt(i.DataDisk.ID)
		if n < 0 || m.vm(i.ID) >= 0 {
			return errors.New("added an instance that is there, or whose disk another has")
		}
		i.Status, i.Address = "TERMINATED", netip.AddrFrom4([4]byte{10, 240, 0, byte(20 + len(m.vms))})
		m.disks, m.vms = slices.Delete(m.disks, n, n+1), append(m.vms, i)
		return nil
	})
}

// StartInstance implements compute.Changes.
func (m *memory) StartInstance(id uint64) error {
	return m.change(func() error {
		n := m.vm(id)
		if n < 0 {
			return errors.New("started an instance that is not there")
		}
		if m.bootFail == nil {
			m.vms[n].Status = "RUNNING"
		}
		return m.bootFail
	})
}

// StopInstance implements compute.Changes.
func (m *memory) StopInstance(id uint64) error {
	return m.change(func() error {
		n := m.vm(id)
		if n < 0 {
			return errors.New("stopped an instance that is not there")
		}
		m.vms[n].Status = "TERMINATED"
		return nil
	})
}

// DeleteInstance implements compute.Changes.
func (m *memory) DeleteInstance(id uint64, withDisk bool) error {
	return m.change(func() error {
		n := m.vm(id)
		if n < 0 {
			return errors.New("deleted an instance that is not there")
		}
		if i := m.vms[n]; !withDisk {
			m.disks = append(m.disks, instance.VM{Zone: i.Zone, DataDisk: i.DataDisk})
		}
		m.vms = slices.Delete(m.vms, n, n+1)
		return nil
	})
}

// SetExternalIP implements compute.Changes.
func (m *memory) SetExternalIP(id uint64, address netip.Addr) error {
	return m.change(func() error {
		n := m.vm(id)
		if n < 0 {
			return errors.New("gave an address to an instance that is not there")
		}
		has := func(i instance.VM) bool { return i.ExternalIP == address }
		if address.IsValid() && slices.ContainsFunc(m.vms, has) {
			return errors.New("gave an address to a second instance")
		}
		m.vms[n].ExternalIP = address
		return nil
	})
}

// AddDisk implements compute.Changes.
func (m *memory) AddDisk(zone string, d instance.Disk) error {
	return m.change(func() error {
		m.disks = append(m.disks, instance.VM{Zone: zone, DataDisk: d})
		return nil
	})
}

// DeleteDisk implements compute.Changes.
func (m *memory) DeleteDisk(id uint64) error {
	return m.change(func() error {
		n := m.diskAt(id)
		if n < 0 {
			return errors.New("deleted a disk that is not there, or that a VM has")
		}
		m.disks = slices.Delete(m.disks, n, n+1)
		return nil
	})
}

// world is an empty project with zones a and b of us-central1, its Compute API behind faults, and quorate's client of
// it. It has a clock of its own, so that nobody waits.
type world struct {
	*gce.Operator
	project *memory
	t       *testing.T
	faults  fault.Set
	// caller is the VM that asks; empty: an operator does. settings are the project's, and may be changed.
	caller   string
	settings *settings.Settings
	server   *local.Server
	takes    time.Duration // each operation does
	changed  int           // how often the project heard of endpoints
	// api answers requests as a server does; each is in asked.
	api   http.Handler
	mu    sync.Mutex
	asked []exchange
}

// exchange is a request and its answer.
type exchange struct {
	request        *http.Request
	sent, answered []byte
	status         int
}

// in calls f with an empty world.
func in(t *testing.T, f func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newWorld(t)) })
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{project: &memory{}, t: t, settings: settings.Whole("demo")}
	caller := func(*http.Request) string { return w.caller }
	server := local.New(local.Config{Instances: w.project.instances, Unattached: w.project.unattached, Caller: caller,
		Changes: w.project, Zones: []string{"us-central1-a", "us-central1-b"}, Images: []instance.Image{
			{Name: "master-1", Family: "master", State: "OBSOLETE"}, {Name: "master-2", Family: "master"},
			{Name: "master-3", Family: "master", State: "DEPRECATED"}}, Settings: w.settings,
		Healthy: func(uint64) bool { return true }, ForwardingChanged: func() { w.changed++ },
		OperationTime: func() time.Duration { return w.takes }})
	w.server, w.api = server, w.faults.Before(fault.Compute, caller, server)
	t.Cleanup(func() {
		server.Close()
		if len(w.project.wrong) > 0 {
			t.Errorf("the project was asked for what it cannot do: %v", w.project.wrong)
		}
	})
	var err error
	w.Operator, err = gce.NewOperator(gce.ComputeConfig{Project: instance.ProjectID, Cluster: "demo",
		Region: "us-central1", Endpoint: "http://compute/compute/v1/", Client: &http.Client{Transport: w}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// RoundTrip implements http.RoundTripper: the API answers here, without a network.
func (w *world) RoundTrip(r *http.Request) (res *http.Response, err error) {
	sent := []byte(nil)
	if r.Body != nil {
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	received := r.Clone(r.Context())
	received.Body, received.RequestURI = io.NopCloser(bytes.NewReader(sent)), r.URL.RequestURI()
	answer := httptest.NewRecorder()
	defer func() {
		if broken := recover(); broken != nil { // as net/http does with http.ErrAbortHandler
			res, err = nil, fmt.Errorf("the connection breaks: %v", broken)
		}
	}()
	w.api.ServeHTTP(answer, received)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, exchange{received, sent, answer.Body.Bytes(), answer.Code})
	return answer.Result(), nil
}

// set arms a fault of the Compute API.
func (w *world) set(f fault.Fault) {
	w.t.Helper()
	if err := w.faults.Put(fault.Compute, f); err != nil {
		w.t.Fatal(err)
	}
}

// do fails the test where err is one.
func (w *world) do(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

const zoneA = "us-central1-a"

func diskSpec() gce.DiskSpec {
	return gce.DiskSpec{Name: "master-a-data", Type: "pd-ssd", SizeGB: 20,
		Labels: map[string]string{"quorate-replica": "master-a"}}
}

func vmSpec() gce.VMSpec {
	const project = "projects/" + instance.ProjectID
	return gce.VMSpec{Name: "master-a", MachineType: "e2-standard-4", Image: project + "/global/images/master-2",
		Network:        project + "/global/networks/default",
		Subnetwork:     project + "/regions/us-central1/subnetworks/default",
		ServiceAccount: instance.MastersAccount(), BootDisk: gce.DiskSpec{Type: "pd-balanced", SizeGB: 30},
		DataDisk: "master-a-data", DeviceName: instance.DeviceName, Tags: []string{"masters"},
		Labels: map[string]string{"team": "x"}, Metadata: map[string]string{"quorate-cluster": "name: demo\n"}}
}
