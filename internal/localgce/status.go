package localgce

import (
	"os"
	"strconv"

	"github.com/quorate/quorate/internal/localgce/guest"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// Status is a project as a person or a script wants to see it.
type Status struct {
	State    string `json:"state"` // the folder
	PID      int    `json:"pid"`
	Project  string `json:"project"`
	Kind     Kind   `json:"kind"` // what the VMs are
	Cluster  string `json:"cluster"`
	Subnet   string `json:"subnet"`
	Endpoint string `json:"endpoint"`
	// ComputeEndpoint is the Compute API's base URL, as the Cluster document's compute.endpoint wants it.
	ComputeEndpoint string `json:"computeEndpoint"`
	// RecordURL is the bucket, as the Cluster document's record.url wants it.
	RecordURL string `json:"recordURL"`
	// Backends are the VMs that get the endpoint's connections; FailOpen says that none of them is ready.
	Backends   []string    `json:"backends"`
	FailOpen   bool        `json:"failOpen"`
	Partitions []direction `json:"partitions"`
	VMs        []VMStatus  `json:"vms"`
}

// AgentStatus is what is known of a VM's agent.
type AgentStatus = guest.Status

// VMStatus is one VM in a Status.
type VMStatus struct {
	Name       string `json:"name"`
	Zone       string `json:"zone"`
	Address    string `json:"address"`
	InstanceID string `json:"instanceID"`
	DiskID     string `json:"diskID"`
	// Status is the Compute API's: RUNNING, STOPPING, TERMINATED.
	Status string `json:"status"`
	Frozen bool   `json:"frozen"`
	Cut    bool   `json:"cut"`
	// Boots counts the power-ons of this instance by this project.
	Boots int `json:"boots"`
	// InitPID is the VM's pid 1 as the host numbers it; 0 while it is off.
	InitPID int          `json:"initPID"`
	Agent   guest.Status `json:"agent"`
	// Log is the file with what init and agent print; LogFolder is the VM's /var/log/quorate.
	Log       string `json:"log"`
	LogFolder string `json:"logFolder"`
}

// Status describes the project.
func (p *Project) Status() Status {
	backends, open := p.balancer.Members(p.conf.Endpoint)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		State: p.conf.State, PID: os.Getpid(), Project: instance.ProjectID, Kind: p.conf.Kind, Cluster: p.conf.Cluster,
		Subnet: p.conf.Subnet.String(), Endpoint: p.conf.Endpoint.String(), ComputeEndpoint: p.conf.computeURL(),
		RecordURL: p.conf.RecordURL(),
		Backends:  append([]string{}, backends...), FailOpen: open, Partitions: append([]direction{}, p.partitions...),
		VMs: []VMStatus{},
	}
	for _, v := range p.vms {
		s.VMs = append(s.VMs, p.vmStatus(v))
	}
	return s
}

// vmStatus describes one VM. p.mu is held.
func (p *Project) vmStatus(v *vm) VMStatus {
	s := VMStatus{
		Name: v.key(), Zone: v.Zone, Address: v.Address.String(),
		InstanceID: strconv.FormatUint(v.ID, 10), DiskID: strconv.FormatUint(v.Disk.ID, 10),
		Status: v.status, Frozen: v.frozen, Cut: v.cut || v.Lost, Boots: v.boots, Agent: v.agent,
		Log: p.names.VMLog(v.key()), LogFolder: p.names.VMLogFolder(v.key()),
	}
	if v.machine != nil && v.machine.cmd != nil {
		s.InitPID = v.machine.cmd.Process.Pid
	}
	return s
}
