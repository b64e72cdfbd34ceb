package replica

import (
	"slices"
	"time"
)

// The components that quorate knows: their flags, probes and election are its own (package controlplane).
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Autoscaler        = "cluster-autoscaler"
)

// AddonManager is the process that keeps the add-ons. It is quorate itself, so it is no component of the document.
const AddonManager = "addons"

// The examples of add-ons that quorate brings: their manifests are its own (package addons/examples).
const (
	CoreDNS       = "coredns"
	KubeProxy     = "kube-proxy"
	MetadataGuard = "metadata-guard"
)

// AddonExamples are the names that a document can have in addons.examples.
var AddonExamples = []string{CoreDNS, KubeProxy, MetadataGuard}

// knownComponents are in every defaulted document, in the order in which they start.
var knownComponents = []string{APIServer, ControllerManager, Scheduler, Autoscaler}

// Known reports whether quorate brings the component's flags, probe and election itself.
func Known(component string) bool { return slices.Contains(knownComponents, component) }

// Words that the document uses for its choices.
const (
	ElectionFast = "fast"
	ElectionSlow = "slow"

	SurvivorsRestore = "restore"
	SurvivorsWait    = "wait"

	ElectSelf  = "self"
	ElectAgent = "agent"
)

// binaryDir is where an image keeps the components' programs.
const binaryDir = "/usr/local/bin/"

// SetDefaults fills every field that is not given. It can be repeated, and it never changes a given field, so a fault
// stays visible to Validate.
func (c *Cluster) SetDefaults() {
	orElse(&c.Endpoint.Port, 443)
	orElse(&c.Replicas, 3)
	if len(c.Network.ServiceCIDRs) == 0 {
		c.Network.ServiceCIDRs = []string{"10.96.0.0/12"}
	}
	orElse(&c.Network.PodCIDR, "10.244.0.0/16")
	orElse(&c.Network.DNSDomain, "cluster.local")
	c.GCE = c.GCE.setDefaults(c.Name)
	c.Etcd.setDefaults()
	c.Kubelet.setDefaults()
	orElse(&c.Election, ElectionFast)
	orElse(&c.Survivors, SurvivorsRestore)
	if len(c.Addons.Examples) > 0 {
		orElse(&c.Addons.Version, 1)
	}
	if c.EncryptionAtRest == nil {
		c.EncryptionAtRest = new(true)
	}
	c.Authorization.setDefaults()
	c.setComponentDefaults()
}

// setDefaults makes a list of its own: a copy of the Cluster, such as Show makes, has the same one.
func (a *Authorization) setDefaults() {
	a.Webhooks = slices.Clone(a.Webhooks)
	for i := range a.Webhooks {
		w := &a.Webhooks[i]
		orElse(&w.SubjectAccessReviewVersion, "v1")
		orElse(&w.Timeout, Duration(3*time.Second))
		orElse(&w.AuthorizedTTL, Duration(5*time.Minute))
		orElse(&w.UnauthorizedTTL, Duration(30*time.Second))
	}
}

// setDefaults: a VM that is recreated is away for one to two minutes, in which 60 000 entries are written at 500 a
// second. 75000 leaves room next to the clients' writes for what the cluster writes itself: with exactly as many as
// were missed, the first of them may be gone. etcd's own 5000 would make every such replica fetch a whole snapshot.
func (e *Etcd) setDefaults() {
	orElse(&e.DataDir, "/var/lib/quorate")
	orElse(&e.QuotaBytes, 8<<30)
	orElse(&e.Heartbeat, Duration(100*time.Millisecond))
	orElse(&e.Election, Duration(time.Second))
	orElse(&e.CatchUpEntries, 75000)
	orElse(&e.Snapshots.Interval, Duration(time.Hour))
	orElse(&e.Snapshots.Hourly, Duration(7*24*time.Hour))
	orElse(&e.Snapshots.Daily, Duration(90*24*time.Hour))
}

// setDefaults: three answers of ten seconds find a runtime that hangs within 36 s. A kubelet on a busy disk takes up to
// three minutes to start.
func (k *Kubelet) setDefaults() {
	if k.Watch == nil {
		k.Watch = new(true)
	}
	orElse(&k.Unit, "kubelet.service")
	orElse(&k.RuntimeUnit, "containerd.service")
	orElse(&k.RuntimeSocket, "/run/containerd/containerd.sock")
	orElse(&k.HealthPort, kubeletHealthPort)
	orElse(&k.AnswerWithin, Duration(10*time.Second))
	orElse(&k.Misses, 3)
	orElse(&k.StartWithin, Duration(5*time.Minute))
}

func (c *Cluster) setComponentDefaults() {
	all := make(map[string]Component, len(c.Components)+len(knownComponents))
	for _, name := range knownComponents {
		all[name] = Component{}
	}
	for name, component := range c.Components {
		all[name] = component
	}
	for name, component := range all {
		if component.Enabled == nil {
			component.Enabled = new(name != Autoscaler)
		}
		if Known(name) {
			orElse(&component.Binary, binaryDir+name)
		}
		orElse(&component.Elect, ElectSelf)
		all[name] = component
	}
	c.Components = all
}

// orElse fills a field that holds its zero value.
func orElse[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
